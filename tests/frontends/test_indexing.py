"""Ops that pick, sort, count and write by index give onnxruntime's outputs, and again after an export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import qbench as qb
from qbench.exporters.onnx_qdq import write_onnx
from tests.frontends.models import check, model, node, random, reference, save

X = random(3, 4, 5)
AT = np.random.default_rng(0).integers(-4, 4, (3, 2, 5))
U = random(3, 2, 5, seed=1)
ND = np.array([[0, 1], [2, -1]])
WHOLE = np.arange(-7, 5).reshape(3, 4)
CASES: dict[str, tuple[str, list[Any], dict[str, Any], int]] = {
    "gather elements": ("GatherElements", [X, AT], {"axis": 1}, 1),
    "scatter elements": ("ScatterElements", [X, np.array([[[1] * 5, [2] * 5]] * 3), U], {"axis": 1}, 1),
    "scatter elements, added": ("ScatterElements", [X, AT, U], {"axis": 1, "reduction": "add"}, 1),
    "scatter nd": ("ScatterND", [X, ND, random(2, 5)], {}, 1),
    "scatter nd, largest": ("ScatterND", [X, ND[:, :1], random(2, 4, 5)], {"reduction": "max"}, 1),
    "top": ("TopK", [X, np.array([3])], {"axis": 1}, 2),
    "bottom": ("TopK", [X, np.array([2])], {"largest": 0}, 2),
    "sums": ("CumSum", [X, np.int64(1)], {}, 1),
    "sums back": ("CumSum", [X, np.int64(-1)], {"reverse": 1, "exclusive": 1}, 1),
    "one hot": ("OneHot", [AT, np.int64(4), np.float32([2, 3])], {"axis": 1}, 1),
    "upper": ("Trilu", [X, np.int64(1)], {}, 1),
    "lower": ("Trilu", [X], {"upper": 0}, 1),
    "remainder": ("Mod", [X, np.float32(0.3)], {"fmod": 1}, 1),
    "whole remainder": ("Mod", [AT, np.int64(3)], {}, 1),
    "whole distance": ("Abs", [WHOLE], {}, 1),
    "whole direction": ("Sign", [WHOLE], {}, 1),
    "whole opposite": ("Neg", [WHOLE], {}, 1),
}


@pytest.mark.parametrize("align_corners", [0, 1])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sample(tmp_path: Path, mode: str, padding: str, align_corners: int) -> None:
    fed = {"x": random(2, 3, 5, 7), "grid": random(2, 4, 6, 2, seed=1) * np.float32(1.5)}
    attrs = {"mode": mode, "padding_mode": padding, "align_corners": align_corners}
    proto = model([node("GridSample", ["x", "grid"], ["y"], **attrs)], {k: list(v.shape) for k, v in fed.items()})
    graph = check(save(proto, tmp_path), fed, 1e-5)
    again = reference(write_onnx(graph, tmp_path / "again.onnx"), fed)["y"]
    np.testing.assert_allclose(again, reference(tmp_path / "model.onnx", fed)["y"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_cases(tmp_path: Path, name: str) -> None:
    op, arrays, attrs, outputs = CASES[name]
    fed = {"x": arrays[0]}
    names = ["x", *(f"c{i}" for i in range(1, len(arrays)))]
    constants = {f"c{i}": np.asarray(array) for i, array in enumerate(arrays) if i}
    made = [f"y{i}" for i in range(outputs)]
    dtypes = {"x": 7 if arrays[0].dtype == np.int64 else 1}
    proto = model([node(op, names, made, **attrs)], {"x": list(arrays[0].shape)}, made, constants, dtypes=dtypes)
    for i in range(outputs):
        proto.graph.output[i].type.Clear()
        whole = (op == "TopK" and i == 1) or name.startswith("whole")
        proto.graph.output[i].type.tensor_type.elem_type = 7 if whole else 1
    graph = check(save(proto, tmp_path), fed)
    again = reference(write_onnx(graph, tmp_path / "again.onnx"), fed)
    for output, array in reference(tmp_path / "model.onnx", fed).items():
        np.testing.assert_array_equal(again[output], array)


@pytest.mark.parametrize("axis", [1, -2, 0])
def test_a_long_table_is_looked_up_while_the_model_is_read(tmp_path: Path, axis: int) -> None:
    table, at = random(3, 512, 5), np.random.default_rng(1).integers(-3, 3, (3, 12, 4))  # as BERT's exporters have it
    nodes = [node("GatherElements", ["table", "at"], ["c"], axis=axis), node("Add", ["x", "c"], ["y"])]
    proto = model(nodes, {"x": ["N", 12, 4]}, ["y"], {"table": table, "at": at})
    graph = check(save(proto, tmp_path), {"x": random(3, 12, 4)})
    assert [one.op for one in graph.nodes] == ["add"]


@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
def test_sequences_the_other_way_round(tmp_path: Path, axes: tuple[int, int]) -> None:
    """Those of lengths that the run tells turn round by themselves; steps behind stay where they are."""
    time, batch = axes
    layer = node("ReverseSequence", ["x", "n"], ["y"], time_axis=time, batch_axis=batch)
    shape = ["T", "N", 2] if time == 0 else ["N", "T", 2]
    proto = model([layer], {"x": shape, "n": ["N"]}, dtypes={"n": TensorProto.INT64})
    sizes = (5, 3, 2) if time == 0 else (3, 5, 2)
    feeds = {"x": random(*sizes), "n": np.array([5, 1, 3])}
    graph = check(save(proto, tmp_path), feeds, 0)
    program = qb.plan(graph, sizes={"T": 5, "N": 3})
    assert not [step for step in program.steps if step.reason]
    np.testing.assert_array_equal(qb.run(graph, feeds), qb.interpret(graph, feeds))


@pytest.mark.parametrize("steps", [5, "T"])
@pytest.mark.parametrize("op", ["ReverseSequence", "RNN"])
def test_sequences_all_as_long_as_the_data(tmp_path: Path, op: str, steps: int | str) -> None:
    """As tf2onnx writes a layer of Keras that goes both ways: each length is the size of the data."""
    nodes = [
        node("Shape", ["x"], ["sizes"]),
        node("Slice", ["sizes", "zero", "one"], ["t"]),
        node("Slice", ["sizes", "one", "two"], ["n"]),
        node("Expand", ["t", "n"], ["lengths"]),
        node("Cast", ["lengths"], ["narrow"], to=TensorProto.INT32),
        node("ReverseSequence", ["x", "lengths"], ["y"])
        if op == "ReverseSequence"
        else node("RNN", ["x", "w", "r", "", "narrow"], ["y"], hidden_size=4),
    ]
    constants = {"zero": np.array([0]), "one": np.array([1]), "two": np.array([2])}
    weights = {"w": random(1, 4, 2), "r": random(1, 4, 4)} if op == "RNN" else {}
    proto = model(nodes, {"x": [steps, "N", 2]}, constants=constants | weights)
    feeds = {"x": random(5, 3, 2)}
    graph = check(save(proto, tmp_path), feeds, 1e-6)
    assert [n.op for n in graph.nodes][-1] == ("strided_slice" if op == "ReverseSequence" else "nn.rnn")
    np.testing.assert_allclose(qb.run(graph, feeds), qb.interpret(graph, feeds), atol=1e-6)
