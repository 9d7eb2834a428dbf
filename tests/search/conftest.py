"""What trials cost is measured in earnest by its own tests alone: elsewhere one turn says enough."""

from __future__ import annotations

import pytest

from qbench.search import cost


@pytest.fixture(autouse=True)
def one_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "_LEAST", 1)
    monkeypatch.setattr(cost, "_SECONDS", 0.0)
