"""``qbench check`` as a person types it."""

from __future__ import annotations

import json

import numpy as np
import pytest

import qbench as qb
from qbench.cli import main
from qbench.data.arrays import write_arrays
from qbench.runtime import interpreter


@pytest.fixture
def model(data_dir):
    return data_dir / "mnist_mlp.onnx"


@pytest.fixture
def digits(data_dir, tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.load(data_dir / "mnist_evaluation.npz")["x"][:20])
    return path


def check(*words):
    return main(["check", *map(str, words)])


def test_a_runtime_that_agrees_ends_with_status_0(model, digits, tmp_path, capsys):
    found = tmp_path / "found.json"
    assert check(model, "--against", "onnxruntime", "--input", digits, "--json", found) == 0
    assert "no difference" in capsys.readouterr().out
    content = json.loads(found.read_text())
    assert (content["different"], content["samples"], content["first_divergent"]) == (0, 20, None)
    assert {"name", "op", "elements", "different", "max_lsb"} <= content["layers"][0].keys()
    assert check(model, "--against", "onnxruntime", "--kernels", "unoptimized", "--input", digits, "--limit", 3) == 0
    assert "3 samples" in capsys.readouterr().out


def test_one_that_does_not_ends_with_status_1_and_the_first_divergent_op(model, digits, tmp_path, capsys):
    graph = qb.load(model)
    values = interpreter.run(graph, {graph.inputs[0]: np.load(digits)}, keep=list(graph.activations()))
    name = graph.nodes[3].output
    values[name] = values[name] + np.float32(1)
    write_arrays(tmp_path / "device.npz", values)
    found = tmp_path / "found.json"
    assert check(model, "--against", tmp_path / "device.npz", "--input", digits, "--json", found) == 1
    content = json.loads(found.read_text())
    assert content["first_divergent"] == graph.nodes[3].name and content["different"] > 0
    assert f"first divergent op: {graph.nodes[3].name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--against", "tvm"], "'tvm' is none of litert, onnxruntime"),
        (["--against", "onnxruntime", "--kernels", "fast"], "'fast' is none of optimized, unoptimized"),
        (["--against", "onnxruntime", "--limit", "0"], "at least 1"),
        (["--against", "onnxruntime", "--json", "/nowhere/found.json"], "there is no folder /nowhere"),
        (["--against", "missing.npz"], "cannot read arrays from missing.npz"),
        (["--against", "onnxruntime", "--size", "5"], "--size are for folders of images"),
        (["--against", "x.npz", "--kernels", "fast"], "a recording has none"),
    ],
)
def test_mistakes_end_with_status_2_and_a_sentence(model, digits, words, said, capsys):
    assert check(model, "--input", digits, *words) == 2
    assert said in capsys.readouterr().err


def test_data_and_models_that_do_not_fit(model, digits, tmp_path, capsys):
    assert check(model, "--against", "onnxruntime", "--input", tmp_path / "no.npy") == 2
    wide = tmp_path / "wide.npy"
    np.save(wide, np.zeros((3, 5), np.float32))
    assert check(model, "--against", "onnxruntime", "--input", wide) == 2
    assert "input" in capsys.readouterr().err
    assert check(model, "--against", "litert", "--input", digits) == 2
    assert "runs TFLite files" in capsys.readouterr().err
