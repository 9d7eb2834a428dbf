"""Values of both models, computed for whoever looks at them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qbench.session.session import Session
from qbench.widgets import Workbench
from tests.networks import mlp, samples
from tests.widgets.test_workbench import override, send


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(Session(mlp(), samples(20), samples(30, seed=5)), layer="relu_1", folder=tmp_path / "out")


def look(bench: Workbench, layer: str | None, **more: Any) -> None:
    send(bench, do="values", layer=layer, **{"part": "activation", "sample": 0, "channel": None, **more})


def test_they_are_computed_on_demand_follow_edits_and_are_let_go(bench: Workbench):
    assert bench.values == {}
    look(bench, "relu_1")
    first = bench.values
    assert (first["layer"], first["samples"], len(first["channels"])) == ("relu_1", 8, 8)
    override(bench, threshold=0.05)
    assert bench.values["scale"] < first["scale"]
    assert bench.values["sqnr_db"] < first["sqnr_db"]
    look(bench, "relu_1", channel=5)
    assert bench.values["channel"] == 5
    look(bench, "dense_1", part="weight")
    assert (bench.values["part"], bench.values["dtype"]) == ("weight", "int8")
    look(bench, None)
    assert bench.values == {}


def test_what_has_no_values_says_why(bench: Workbench):
    look(bench, "relu_1", part="weight")
    assert "has no quantized weight" in bench.values["absent"]
    look(bench, "relu_9")
    assert "no layer is called 'relu_9'" in bench.values["absent"]
    assert bench.status["error"] is None
