"""Ops whose sizes only the run knows: the graph ends before them, and the export puts them back."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import qbench as qb
from qbench.errors import ExportError, UnsupportedOpsError
from qbench.exporters import write_onnx
from qbench.ir import archive
from qbench.ir.build import TAIL
from qbench.runtime.interpreter import run
from tests.frontends.models import model, node, random, reference, save

INT64 = TensorProto.INT64


def boxes_of_every_cell(folder: Path, size: int | str) -> Path:
    """A convolution with two heads; non-maximum suppression, and what was found of both heads."""
    nodes = [
        node("Conv", ["x", "w"], ["conv"], "conv", pads=[1, 1, 1, 1]),
        node("Relu", ["conv"], ["features"], "relu"),
        node("Conv", ["features", "to_boxes"], ["sides"], "sides"),
        node("Conv", ["features", "to_scores"], ["raw"], "raw"),
        node("Sigmoid", ["raw"], ["likely"], "likely"),
        node("Reshape", ["sides", "four"], ["boxes_t"], "boxes_t"),
        node("Transpose", ["boxes_t"], ["boxes"], "boxes", perm=[0, 2, 1]),
        node("Reshape", ["likely", "two"], ["scores"], "scores"),
        node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["found"], "nms"),
        node("Split", ["found"], ["image", "label", "place"], "split", axis=1, split=[1, 1, 1]),
        node("Squeeze", ["place"], ["places"], "places", axes=[1]),
        node("Shape", ["x"], ["shape"], "shape"),
        node("Cast", ["shape"], ["sizes"], "sizes", to=TensorProto.FLOAT),
        node("Gather", ["sizes", "third"], ["height"], "height"),
        node("Squeeze", ["boxes"], ["rows"], "rows", axes=[0]),
        node("Gather", ["rows", "places"], ["taken"], "take", axis=0),
        node("Mul", ["taken", "height"], ["y"], "scale"),
    ]
    constants = {
        "w": random(8, 3, 3, 3),
        "to_boxes": random(4, 8, 1, 1, seed=2),
        "to_scores": random(2, 8, 1, 1, seed=3),
        "four": np.array([1, 4, -1]),
        "two": np.array([1, 2, -1]),
        "third": np.array([2]),
        "most": np.array([3]),
        "overlap": np.array([0.5], np.float32),
        "least": np.array([0.5], np.float32),
    }
    outputs, dtypes = ["features", "label", "y"], {"label": INT64}
    return save(model(nodes, {"x": [1, 3, size, size]}, outputs, constants, opset=11, dtypes=dtypes), folder)


def largest_of_some(folder: Path, size: int | str) -> Path:
    """As many of the largest numbers as are above 0, by the body of an If that reads them from outside."""
    given = helper.make_tensor_value_info
    some = helper.make_graph([node("TopK", ["flat", "count"], ["v", "i"], "top")], "some", [], [given("v", 1, None)])
    none = helper.make_graph([node("Mul", ["flat", "zero"], ["z"], "none")], "none", [], [given("z", 1, None)])
    nodes = [
        node("MatMul", ["x", "w"], ["h"], "h"),
        node("Greater", ["h", "zero"], ["above"], "above"),
        node("NonZero", ["above"], ["where"], "where"),
        node("Reshape", ["h", "all"], ["flat"], "flat"),
        node("Shape", ["where"], ["found"], "found"),
        node("Slice", ["found", "one", "two"], ["count"], "count"),
        node("Greater", ["count", "nothing"], ["any"], "any"),
        node("Squeeze", ["any"], ["is"], "is"),
        node("If", ["is"], ["y"], "if", then_branch=some, else_branch=none),
    ]
    constants = {
        "w": random(4, 5),
        "zero": np.float32(0),
        "all": np.array([-1]),
        "one": np.array([1]),
        "two": np.array([2]),
        "nothing": np.array([0]),
    }
    return save(model(nodes, {"x": [size, 4]}, constants=constants), folder)


MODELS = {
    "boxes": (boxes_of_every_cell, (1, 3, 6, 6), ("features", "boxes", "scores"), "'nms'.*only the run knows"),
    "largest": (largest_of_some, (6, 4), ("above", "flat"), "'where'.*only the run knows"),
}


@pytest.mark.parametrize("size", [6, "S"])
@pytest.mark.parametrize("kind", MODELS)
def test_what_lies_behind_comes_back(
    kind: str, size: int | str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    made, shape, ends, why = MODELS[kind]
    path = made(tmp_path, size)
    graph = qb.load(path)
    assert set(graph.outputs) == set(ends)
    assert re.search(why, caplog.text)
    archive.save(graph, tmp_path / "kept.qbench")
    assert archive.load(tmp_path / "kept.qbench") == graph
    feeds = {"x": random(*shape, seed=5)}
    want, got = reference(path, feeds), reference(write_onnx(graph, tmp_path / "float.onnx"), feeds)
    assert list(got) == list(want)
    for name in want:
        np.testing.assert_allclose(got[name], want[name], 1e-5, 1e-6)
    if size != "S":
        return
    session = qb.Session(graph, [{"x": random(*shape, seed=seed)} for seed in range(4)])
    session.run()
    whole = qb.export_onnx(session, tmp_path / "int8.onnx")
    theirs = reference(whole, feeds)
    assert list(theirs) == list(want)
    ours = run(session.quantized().annotated, feeds)
    for name in set(ends) & set(want):
        np.testing.assert_allclose(ours[name], theirs[name], 1e-5, 1e-6)
    rest = onnx.ModelProto.FromString(graph.constants[TAIL].array.tobytes())
    reads = {value.name: (ours | feeds)[value.name] for value in rest.graph.input}
    for name, value in reference(save(rest, tmp_path, "rest.onnx"), reads).items():
        np.testing.assert_allclose(value, theirs[name], 1e-5, 1e-6)
    with pytest.raises(ExportError, match=r"load\(outputs="):
        qb.export_tflite(session, tmp_path / "m.tflite")


def test_with_nothing_before_it_there_is_nothing_to_quantize(tmp_path: Path) -> None:
    nodes = [node("NonZero", ["x"], ["found"], "where"), node("Cast", ["found"], ["y"], "cast", to=1)]
    with pytest.raises(UnsupportedOpsError, match="only the run knows"):
        qb.load(save(model(nodes, {"x": [2, 4]}), tmp_path))


def test_numbers_without_axes_stay_so(tmp_path: Path) -> None:
    graph = qb.load(largest_of_some(tmp_path, 6))
    rest = onnx.ModelProto.FromString(graph.constants[TAIL].array.tobytes())
    assert {tensor.name: list(tensor.dims) for tensor in rest.graph.initializer}["zero"] == []
