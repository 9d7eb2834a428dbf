"""How long a sweep takes, here and in onnxruntime: what is measured, and what the command writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from qbench.bench.interactive import random_samples
from qbench.bench.sweep import sweep
from qbench.cli import main
from tests.frontends.models import classifier


def test_all_layers_are_swept_by_both(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    seen: list[tuple[str, int, int]] = []
    found = sweep(str(classifier(tmp_path)), random_samples, {}, lambda stage, i, n: seen.append((stage, i, n)))
    assert len(set(found.layers)) == len(found.layers) > 1
    assert found.samples == 32
    assert min(found.qbench_s, found.onnxruntime_s or 0) > 0
    assert seen == [("sweeps", done, 2) for done in range(3)]
    assert "times as long" in str(found)


def test_the_command_writes_both_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qbench.bench.sweep.installed", lambda package: False)
    path = tmp_path / "sweep.json"
    assert main(["bench", "--sweep", str(classifier(tmp_path)), "--json", str(path)]) == 0
    content = json.loads(path.read_text())
    assert content["qbench_s"] > 0
    assert content["onnxruntime_s"] is None
    assert content["samples"] == 32
