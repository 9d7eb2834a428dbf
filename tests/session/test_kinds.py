"""Small networks of the kinds that exporters write, from a file through a session to a file: the whole road."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto

import qbench as qb
from qbench.ir.batch import batch_symbol
from qbench.runtime.interpreter import run
from tests.frontends.models import check, model, node, random, reference, save

RNG = np.random.default_rng(7)


def weights(*shape: int) -> np.ndarray:
    return random(*shape, seed=sum(shape)) / np.float32(shape[0] ** 0.5)


def edges() -> ModelProto:
    """Nodes and edges: what is along axis 0 is no sample."""
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        node("Gather", ["edges", "zero"], ["source"]),
        node("Gather", ["edges", "one"], ["target"]),
        node("Gather", ["h", "source"], ["messages"]),
        node("Sub", ["h", "h"], ["none"]),
        node("Unsqueeze", ["target", "axes"], ["column"]),
        node("ScatterND", ["none", "column", "messages"], ["sums"], reduction="add"),
        node("Relu", ["sums"], ["active"]),
        node("MatMul", ["active", "v"], ["y"]),
    ]
    integers = {"zero": np.int64(0), "one": np.int64(1), "axes": np.int64([1])}
    constants = {name: np.asarray(array) for name, array in integers.items()} | {"w": weights(6, 8), "v": weights(8, 3)}
    types = {"edges": TensorProto.INT64}
    return model(nodes, {"x": ["nodes", 6], "edges": [2, "edges"]}, constants=constants, dtypes=types, opset=18)


def edges_feed(count: int, links: int) -> dict[str, np.ndarray]:
    x = RNG.normal(size=(count, 6)).astype(np.float32)
    return {"x": x, "edges": RNG.integers(0, count, (2, links))}


def attention() -> ModelProto:
    """Scores under a causal mask of minus infinity, with any number of sentences of any length."""
    nodes = [
        node("MatMul", ["x", "w"], ["q"]),
        node("Add", ["q", "b"], ["qb"]),
        node("Transpose", ["x"], ["k"], perm=[0, 2, 1]),
        node("MatMul", ["qb", "k"], ["scores"]),
        node("Shape", ["scores"], ["sizes"]),
        node("ConstantOfShape", ["sizes"], ["rows"]),
        node("Add", ["scores", "mask"], ["masked"]),
        node("Add", ["masked", "rows"], ["all"]),
        node("Softmax", ["all"], ["p"], axis=-1),
        node("MatMul", ["p", "qb"], ["mixed"]),
        node("MatMul", ["mixed", "v"], ["wide"]),
        node("Add", ["wide", "c"], ["y"]),
    ]
    mask = np.triu(np.full((7, 7), -np.inf, np.float32), 1)
    constants = {"w": weights(8, 8), "b": weights(8), "v": weights(8, 4), "c": weights(4), "mask": mask}
    return model(nodes, {"x": ["batch", 7, 8]}, constants=constants, opset=18)


def time_first() -> ModelProto:
    """A recognizer: what it gives has time along axis 0 and samples along axis 1; two open sizes go into a layer."""
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[2, 0, 1]),
        node("MatMul", ["t", "w"], ["h"]),
        node("Add", ["h", "b"], ["hb"]),
        node("Relu", ["hb"], ["r"]),
        node("MatMul", ["r", "v"], ["o"]),
        node("Add", ["o", "c"], ["y"]),
    ]
    constants = {"w": weights(8, 16), "b": weights(16), "v": weights(16, 5), "c": weights(5)}
    return model(nodes, {"x": ["batch", 8, "time"]}, constants=constants, opset=18)


def steps(*nodes: NodeProto, **constants: np.ndarray) -> Callable[[], ModelProto]:
    """Time along axis 0 of all that goes in and comes out, and something that mixes its steps."""

    def make() -> ModelProto:
        layers = [node("MatMul", ["x", "w"], ["h"]), *nodes, node("MatMul", ["mixed", "v"], ["y"])]
        weighted = {"w": weights(8, 6), "v": weights(6, 3), **constants}
        return model(layers, {"x": ["time", 8]}, constants=weighted, opset=18)

    return make


MIXERS = {
    "mean": steps(node("ReduceMean", ["h", "first"], ["m"]), node("Sub", ["h", "m"], ["mixed"]), first=np.array([0])),
    "scores": steps(
        node("Transpose", ["h"], ["k"]),
        node("MatMul", ["h", "k"], ["s"]),
        node("Softmax", ["s"], ["p"]),
        node("MatMul", ["p", "h"], ["mixed"]),
    ),
    "sums": steps(node("CumSum", ["h", "zero"], ["mixed"]), zero=np.asarray(np.int64(0))),
    "softmax": steps(node("Softmax", ["h"], ["mixed"], axis=0)),
    "neighbours": steps(
        node("Transpose", ["h"], ["t"]),
        node("Unsqueeze", ["t", "axes"], ["line"]),
        node("Conv", ["line", "filter"], ["c"], pads=[1, 1]),
        node("Squeeze", ["c", "axes"], ["flat"]),
        node("Transpose", ["flat"], ["mixed"]),
        axes=np.array([0]),
        filter=weights(6, 6, 3),
    ),
    "recurrent": steps(
        node("Unsqueeze", ["h", "axes"], ["one"]),
        node("GRU", ["one", "kernel", "recurrence"], ["g"], hidden_size=6),
        node("Squeeze", ["g", "both"], ["mixed"]),
        axes=np.array([1]),
        both=np.array([1, 2]),
        kernel=weights(1, 18, 6),
        recurrence=weights(1, 18, 6),
    ),
    "reversed": steps(
        node("Slice", ["h", "start", "end", "zero", "back"], ["r"]),
        node("Add", ["h", "r"], ["mixed"]),
        start=np.array([-1]),
        end=np.array([-(2**31)]),
        zero=np.array([0]),
        back=np.array([-1]),
    ),
}


@pytest.mark.parametrize("mixer", MIXERS)
def test_steps_of_time_are_no_samples(mixer: str, tmp_path: Path) -> None:
    path, x = save(MIXERS[mixer](), tmp_path), reals(9, 8)
    graph = check(path, x)
    assert batch_symbol(graph) is None
    wanted = reference(path, x)["y"]
    np.testing.assert_allclose(qb.plan(graph, sizes={"time": 9}).run(x)["y"], wanted, rtol=1e-4, atol=1e-5)


def anchors() -> ModelProto:
    """A detector's head: part of it depends on the sizes alone, not on the samples."""
    nodes = [
        node("MatMul", ["x", "w"], ["h"]),
        node("MatMul", ["grid", "g"], ["steps"]),
        node("Add", ["h", "steps"], ["sum"]),
        node("Greater", ["sum", "zero"], ["above"]),
        node("Where", ["above", "sum", "h"], ["chosen"]),
        node("Sigmoid", ["chosen"], ["y"]),
        node("MatMul", ["steps", "v"], ["z"]),
        node("Shape", ["x"], ["sizes"]),
        node("Add", ["y", "z"], ["out"]),
    ]
    grid = np.stack(np.meshgrid(np.arange(3.0), np.arange(3.0)), -1).reshape(1, 9, 2).astype(np.float32)
    constants = {"w": weights(8, 4), "grid": grid, "g": weights(2, 4), "v": weights(4, 4), "zero": np.float32([0])}
    return model(nodes, {"x": ["batch", 9, 8]}, constants=constants, opset=18)


def reals(*shape: int) -> dict[str, np.ndarray]:
    return {"x": RNG.normal(size=shape).astype(np.float32)}


KINDS = {
    "edges": (edges, [edges_feed(5 + k, 9 + k) for k in range(6)]),
    "attention": (attention, [reals(1, 7, 8) for _ in range(6)]),
    "time_first": (time_first, [reals(1, 8, 6 + k) for k in range(6)]),
    "anchors": (anchors, [reals(1, 9, 8) for _ in range(6)]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_from_file_to_file(kind: str, tmp_path: Path) -> None:
    make, feeds = KINDS[kind]
    path = save(make(), tmp_path)
    graph = check(path, feeds[0])
    check(path, feeds[-1])
    session = qb.Session(graph, calibration=feeds[:4], evaluation=feeds[4:])
    report = session.run()
    assert report.stopped is None
    assert report.output.samples == 2
    assert report.output.sqnr_db is not None
    assert report.output.sqnr_db > 15
    assert any(layer.own_sqnr_db is not None for layer in report.by_layer)

    exported = qb.export_onnx(session, tmp_path / "quantized.onnx")
    for feed in feeds[4:]:
        ours = run(session.graph, feed)
        for name, given in reference(exported, feed).items():
            assert np.abs(ours[name] - given).max() < 0.02 * np.abs(given).max()
