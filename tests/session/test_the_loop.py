"""The lines that the README and the notebooks promise, on the thread's own model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import qbench as qb


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_dir: Path) -> Path:
    (tmp_path / "data").symlink_to(data_dir)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_word_for_word(in_tmp: Path):
    with np.load("data/mnist_calibration.npz") as cal, np.load("data/mnist_evaluation.npz") as evaluation:
        x_cal, x_eval, y_eval = cal["x"], evaluation["x"], evaluation["y"]
    x = x_eval[:3]

    graph = qb.load("data/mnist_mlp.onnx")
    y = qb.run(graph, x)
    session = qb.Session(graph, calibration=x_cal, evaluation=(x_eval, y_eval), path="mnist.session")
    report = session.run()
    session.override("dense_1", threshold=2.5)
    tuned = session.run()
    session.undo()
    session.redo()
    text = str(session.diff())
    session.config.save("tuned.json")
    history = session.history
    session = qb.Session.resume("mnist.session")

    assert y.shape == (3, 10)
    assert set(report.layers.columns) >= {"name", "op", "runs_as", "reason", "sqnr_db", "threshold", "scale"}
    assert report.output.sqnr_db > 40
    assert report.output.top1 == pytest.approx(report.output.top1_float, abs=0.003)
    assert report.output.agreement >= 0.995
    layers = report.layers.set_index("name")
    assert set(layers.runs_as[layers.op != "nn.softmax"]) <= {"int8", "uint8", "int32"}
    assert set(layers.runs_as[layers.op == "nn.softmax"]) == {"float32"}
    assert tuned.layer("dense_1").threshold == 2.5
    assert tuned.steps_ran[0] == "dense_1.requantize"
    assert "dense_1" in text and "2.5" in text
    assert session.history == history
    assert qb.QuantConfig.load("tuned.json") == session.config
    assert session.report.output == tuned.output
    assert session.run().output == tuned.output
    integers = qb.run(session.graph, x)
    assert np.array_equal(integers.argmax(1), y.argmax(1))
    session.save("mnist.qbench")
    assert np.array_equal(qb.run(qb.load("mnist.qbench"), x), integers)


def test_taken_away_as_onnx(in_tmp: Path):
    ort = pytest.importorskip("onnxruntime")
    with np.load("data/mnist_calibration.npz") as cal, np.load("data/mnist_evaluation.npz") as evaluation:
        session = qb.Session(qb.load("data/mnist_mlp.onnx"), cal["x"], (evaluation["x"], evaluation["y"]))
        x = evaluation["x"][:200]
    session.override("dense_1", threshold=2.5)
    path = qb.export_onnx(session, "model.qdq.onnx")
    theirs = ort.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    (y,) = theirs.run(None, {theirs.get_inputs()[0].name: x})
    assert np.mean(y.argmax(1) == qb.run(session.graph, x).argmax(1)) >= 0.995

    overrides = json.loads(qb.export_overrides(session, "overrides.json").read_text())["TensorQuantOverrides"]
    assert overrides["relu_1"][0]["scale"] == session.encodings["relu_1"].qparams.scale
    assert len(overrides["dense_1.weight"]) == 512


def test_a_network_with_branches(in_tmp: Path):
    with np.load("data/mnist_calibration.npz") as cal, np.load("data/mnist_evaluation.npz") as evaluation:
        session = qb.Session(
            qb.load("data/mnist_cnn.onnx"), cal["x"][:100], (evaluation["x"][:100], evaluation["y"][:100])
        )
    report = session.run()
    assert [layer.name for layer in report.by_layer] == [node.name for node in session.prepared.nodes]
    assert all(layer.sqnr_db is not None and layer.sqnr_db > 25 for layer in report.by_layer)
    assert {layer.runs_as for layer in report.by_layer if layer.op != "nn.softmax"} == {"uint8", "int32"}
    assert all(layer.scale for layer in report.by_layer if layer.op != "nn.softmax")
    assert report.layer("add").sqnr_db == report.layer("add_relu").sqnr_db
    assert report.output.agreement >= 0.98
    session.override("depthwise_1", keep_float=True)
    changed = session.run()
    assert {layer.name for layer in changed.by_layer if layer.runs_as == "float32"} == {
        "depthwise_1", "depthwise_1_norm", "depthwise_1_relu", "softmax",
    }  # fmt: skip
    assert "conv_1" not in changed.steps_ran
