"""How much faster a calibration is on more processes: what is measured, and what the command writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qbench.cli import main
from tests.frontends.models import classifier

pytest.importorskip("distributed")


def test_the_command_writes_what_was_predicted_and_what_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "scaling.json"
    assert main(["bench", "--workers", "2", str(classifier(tmp_path)), "--json", str(path)]) == 0
    content = json.loads(path.read_text())
    assert content["samples"] == 100
    assert content["tensors"] > 1
    one, two = content["teams"]  # one worker is always measured, too
    assert (one["workers"], two["workers"]) == (1, 2)
    assert one["efficiency"] == 1
    at_once = min(2, content["processors"])
    assert two["efficiency"] == pytest.approx(one["seconds"] / (at_once * two["seconds"]))
    assert two["predicted_s"] == pytest.approx(content["pass_s"] / at_once + 2 * content["merge_s"])
    assert content["pass_s"] + content["merge_s"] == pytest.approx(one["seconds"])
    assert "efficiency" in capsys.readouterr().out


def test_one_measurement_at_a_time(capsys: pytest.CaptureFixture[str]):
    assert main(["bench", "--sweep", "--workers", "1,2", "resnet18"]) == 2
    assert "--sweep and --workers are several measurements" in capsys.readouterr().err
