"""``qbench tune``: from the files that go in to the files that come out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from qbench.cli import main
from qbench.quant.config import QuantConfig
from qbench.search import cost
from tests.frontends import models

X = models.random(24, 3, 8, 8, seed=1)
METRIC = """
import numpy as np
def likeness(outputs, y):
    return float(np.mean(outputs["logits"][np.arange(len(y)), y]))
"""

METRIC_OF_TEXTS = """
import numpy as np
def right(outputs, y):
    return float(np.mean([f"text {k}" == text for k, text in zip(outputs["logits"].argmax(1), y)]))
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cost, "_MOST", 0.0)  # one turn says enough
    models.classifier(tmp_path)
    np.savez(tmp_path / "cal.npz", x=X[:12])
    np.savez(tmp_path / "eval.npz", x=X[12:], y=np.arange(12) % 4)
    (tmp_path / "own_metric_of_tune.py").write_text(METRIC)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def tune(*more: str) -> int:
    command = ["tune", "model.onnx", "--calibration", "cal.npz", "--evaluation", "eval.npz", "--out", "out"]
    return main([*command, "--set", "weights.dtype=int4", *more])


def test_a_metric_knows_what_its_truths_are_also_those_beside_files_of_samples(here: Path):
    (here / "lines").mkdir()
    for number, sample in enumerate(X[12:]):
        np.save(here / f"lines/{number:02}.npy", sample[None])
    np.save(here / "lines/y.npy", np.array([f"text {number % 4}" for number in range(12)]))
    (here / "own_metric_of_texts.py").write_text(METRIC_OF_TEXTS)
    command = ["quantize", "model.onnx", "--calibration", "cal.npz", "--evaluation", "lines", "--out", "out"]
    assert main([*command, "--metric", "own_metric_of_texts:right"]) == 0
    said = json.loads((here / "out/report.json").read_text())["output"]
    logits = models.reference(here / "model.onnx", {"x": X[12:]})["logits"]
    assert said["metric_float"] == np.mean(logits.argmax(1) == np.arange(12) % 4)


def test_what_is_written(here: Path, capsys: pytest.CaptureFixture[str]):
    assert tune("--metric", "own_metric_of_tune:likeness", "--at-least", "1e6", "--max-ms", "1e6") == 0
    said = capsys.readouterr().out
    assert "nothing meets what is wanted; the nearest is marked with a star" in said
    assert "wrote config.json, report.json, model.qbench, model.qdq.onnx, front.json, front.png to out" in said
    front = json.loads((here / "out/front.json").read_text())
    assert front["met"] is False
    assert all(row[key] is not None for row in front["rows"] for key in ("metric_chosen_on", "metric_held_back"))
    assert sum(row["best"] for row in front["rows"]) == 1
    best = next(row for row in front["rows"] if row["best"])
    assert QuantConfig.load(here / "out/config.json") == QuantConfig.from_data(best["config"])
    with Image.open(here / "out/front.png") as picture:
        assert picture.width > 300

    trials = json.loads((here / "out/trials.json").read_text())["trials"]
    assert tune("--metric", "own_metric_of_tune:likeness", "--at-least", "1e6", "--max-ms", "1e6") == 0
    assert json.loads((here / "out/trials.json").read_text())["trials"] == trials  # nothing was measured again


def test_it_goes_on_where_nobody_listens(here: Path, monkeypatch: pytest.MonkeyPatch):
    def gone(text: object, **options: object) -> None:
        if options.get("flush"):  # what is told on the way
            raise BrokenPipeError

    monkeypatch.setattr("qbench.cli.tune.print", gone, raising=False)
    assert tune("--metric", "own_metric_of_tune:likeness", "--at-least", "1e6", "--max-ms", "1e6") == 0
    assert (here / "out/front.json").exists()
    assert (here / "out/model.qdq.onnx").exists()


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--metric", "nowhere_at_all:f"], "the metric's module 'nowhere_at_all' cannot be imported"),
        (["--seconds", "0"], "seconds=0.0: it must be a positive number"),
    ],
)
def test_a_mistake_is_told_before_anything_long(
    here: Path, capsys: pytest.CaptureFixture[str], options: list[str], complaint: str
):
    assert tune(*options) == 2
    assert complaint in capsys.readouterr().err
    assert not (here / "out").exists()
