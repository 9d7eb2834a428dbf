"""How long an answer takes: what is measured, and what the command writes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from qbench.bench.interactive import interactive, random_samples
from qbench.cli import main
from tests.frontends.models import classifier


def test_every_edit_is_timed_with_both_answers(tmp_path: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    answers = interactive(str(classifier(tmp_path)), random_samples, {}, lambda stage, i, n: seen.append((stage, i, n)))
    count = len(answers.layers)
    assert 1 < count <= 20
    assert len(set(answers.layers)) == count
    assert len(answers.probe_ms) == len(answers.full_ms) == count
    assert min(*answers.probe_ms, *answers.full_ms) > 0
    assert answers.last.output.samples == 100
    assert seen == [("edits", done + 1, 2 * count) for done in range(2 * count)]
    scales = {layer.name: layer for layer in answers.last.by_layer}
    assert all("override" in (scales[name].chosen_by or "") for name in answers.layers)


def test_the_command_writes_medians_and_worst(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "answers.json"
    assert main(["bench", "--interactive", str(classifier(tmp_path)), "--json", str(path)]) == 0
    content = json.loads(path.read_text())
    for kind in ("probe_ms", "full_ms"):
        taken = [edit[kind] for edit in content["edits"]]
        assert content[kind] == {"median": pytest.approx(np.median(taken)), "worst": max(taken)}
    assert content["data"] == "random numbers"
    said = capsys.readouterr()
    assert "random numbers stand for it" in said.err
    assert "median" in said.out


def test_given_data_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x = np.random.default_rng(0).normal(size=(9, 3, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "x.npz", x=x, y=np.zeros(9, np.int64))
    path = tmp_path / "answers.json"
    main(["bench", "--interactive", str(classifier(tmp_path)), "--data", str(tmp_path / "x.npz"), "--json", str(path)])
    content = json.loads(path.read_text())
    assert (content["samples"], content["data"]) == (9, str(tmp_path / "x.npz"))
    assert "random" not in capsys.readouterr().err


def test_one_model_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--interactive", "resnet18", "mobilenetv2"]) == 2
    assert "one model at a time, not 2" in capsys.readouterr().err
