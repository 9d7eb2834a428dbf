"""Graphs that end before the file's outputs: what lies behind may be what no graph can hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from qbench.errors import ModelError
from qbench.frontends import load
from qbench.runtime.interpreter import run
from tests.frontends.models import model, node, random, reference, save

WHOLE = {"y": TensorProto.INT64}


def detector(folder: Path) -> Path:
    """Boxes, scores, and a choice among them; a branch that reads a value from outside."""
    inner = helper.make_tensor_value_info("s", TensorProto.FLOAT, None)
    branches = {
        f"{name}_branch": helper.make_graph([node(op, ["raw"], ["s"])], name, [], [inner])
        for name, op in (("then", "Sigmoid"), ("else", "Tanh"))
    }
    nodes = [
        node("MatMul", ["x", "w"], ["boxes"], "boxes"),
        node("Neg", ["score"], ["raw"], "raw"),
        node("If", ["plain"], ["scores"], "if", **branches),
        node("NonMaxSuppression", ["boxes", "scores", "most"], ["y"], "nms"),
    ]
    constants = {"w": random(4, 4), "plain": np.array(True), "most": np.array([3])}
    return save(model(nodes, {"x": [1, 6, 4], "score": [1, 2, 6]}, constants=constants, dtypes=WHOLE), folder)


def test_a_detector_ends_before_its_choice(tmp_path: Path) -> None:
    path = detector(tmp_path)
    graph = load(path, outputs=["boxes", "scores"])
    assert graph.outputs == ("boxes", "scores")
    feeds = {"x": random(1, 6, 4), "score": random(1, 2, 6)}
    made = run(graph, feeds)
    constants = {"boxes": made["boxes"], "scores": made["scores"]}
    choice = node("NonMaxSuppression", ["boxes", "scores", "most"], ["y"])
    rest = model([choice], {k: v.shape for k, v in constants.items()}, constants={"most": np.array([3])}, dtypes=WHOLE)
    want = reference(path, feeds)["y"]
    np.testing.assert_array_equal(reference(save(rest, tmp_path, "rest.onnx"), constants)["y"], want)


def test_only_what_the_model_has(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no value 'box'.*'boxes'"):
        load(detector(tmp_path), outputs=["box"])
