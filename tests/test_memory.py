"""The script that watches memory says what is resident, and judges it."""

from __future__ import annotations

import pytest

from tests import memory
from tests.cluster.killing import images
from tests.networks import residual


def test_it_watches_both_stages(capsys: pytest.CaptureFixture[str]):
    seen = memory.watched(residual(), images()[:40], 10, 1 << 20)
    assert {*seen} == {"calibration", "evaluation"}
    assert len(seen["calibration"]) >= 4
    said = capsys.readouterr().out
    assert "calibration: 1" in said
    assert "evaluation: 40 of 40 images" in said


def test_what_grows_is_told():
    assert not memory.grows([1 << 30] * 4)
    assert memory.grows([1 << 30, 1 << 30, 1 << 30, (1 << 30) + (1 << 27)])
