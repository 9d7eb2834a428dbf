from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from qbench.errors import DataError, GraphError
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.types import TensorType
from qbench.runtime import interpreter


def mlp(dtype: str = "float32") -> Graph:
    rng = np.random.default_rng(0)
    constants = {
        "w1": Constant(rng.normal(size=(5, 4)).astype(dtype)),
        "b1": Constant(rng.normal(size=5).astype(dtype)),
        "w2": Constant(rng.normal(size=(3, 5)).astype(dtype)),
    }
    nodes = [
        Node("fc1", "nn.dense", ("x", "w1"), ("h",)),
        Node("fc1_bias", "nn.bias_add", ("h", "b1"), ("hb",)),
        Node("relu1", "nn.relu", ("hb",), ("r",)),
        Node("fc2", "nn.dense", ("r", "w2"), ("logits",)),
        Node("softmax", "nn.softmax", ("logits",), ("y",)),
    ]
    return build("mlp", {"x": TensorType(("N", 4), dtype)}, ["y"], nodes, constants)


def expected(graph: Graph, x: np.ndarray) -> np.ndarray:
    w1, b1, w2 = (graph.constants[name].array.astype(np.float64) for name in ("w1", "b1", "w2"))
    logits = np.maximum(x.astype(np.float64) @ w1.T + b1, 0) @ w2.T
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


@pytest.mark.parametrize("batch", [0, 1, 7])
def test_runs_any_batch(batch: int) -> None:
    graph, x = mlp(), np.random.default_rng(1).normal(size=(batch, 4)).astype(np.float32)
    result = interpreter.run(graph, {"x": x}, keep=["r", "w1"])
    assert list(result) == ["y", "r", "w1"]
    np.testing.assert_allclose(result["y"], expected(graph, x), rtol=1e-5)
    assert result["r"].shape == (batch, 5)
    np.testing.assert_array_equal(interpreter.call(graph, x), result["y"])
    np.testing.assert_array_equal(interpreter.call(graph, {"x": x}), result["y"])


@pytest.mark.parametrize("dtype, tolerance", [("float16", 2e-3), ("bfloat16", 2e-2)])
def test_half_precision_is_computed_in_float32_and_rounded(dtype: str, tolerance: float) -> None:
    graph = mlp(dtype)
    x = np.random.default_rng(1).normal(size=(7, 4)).astype(graph.constants["w1"].array.dtype)
    result = interpreter.call(graph, x)
    assert result.dtype == x.dtype
    np.testing.assert_allclose(result.astype(np.float64), expected(graph, x), atol=tolerance)


def test_overflow_in_half_precision_is_infinity() -> None:
    nodes = [Node("square", "multiply", ("x", "x"), ("y",))]
    graph = build("g", {"x": TensorType((1,), "float16")}, ["y"], nodes)
    assert interpreter.call(graph, np.full(1, 60000, np.float16))[0] == np.inf


def test_values_are_freed_after_their_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    alive: dict[str, weakref.ref[np.ndarray]] = {}
    seen: list[set[str]] = []
    real = interpreter.step

    def watched(graph: Graph, node: Node, arrays: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        gc.collect()
        seen.append({name for name, ref in alive.items() if ref() is not None})
        results = real(graph, node, arrays)
        alive.update({name: weakref.ref(array) for name, array in zip(node.outputs, results, strict=True)})
        return results

    monkeypatch.setattr(interpreter, "step", watched)
    interpreter.run(mlp(), {"x": np.ones((2, 4), np.float32)})
    assert seen == [set(), {"h"}, {"hb"}, {"r"}, {"logits"}]


def test_input_that_is_an_output() -> None:
    graph = build("g", {"x": TensorType(("N",), "float32")}, ["x"], [])
    x = np.ones(3, np.float32)
    np.testing.assert_array_equal(interpreter.call(graph, x), x)


def test_several_inputs_and_outputs() -> None:
    types = {"a": TensorType(("N", 2), "float32"), "b": TensorType(("2*N", 2), "float32")}
    nodes = [Node("n", "negative", ("a",), ("na",)), Node("m", "exp", ("b",), ("eb",))]
    graph = build("g", types, ["na", "eb"], nodes)
    feeds = {"a": np.ones((3, 2), np.float32), "b": np.zeros((6, 2), np.float32)}
    result = interpreter.call(graph, feeds)
    assert isinstance(result, dict) and list(result) == ["na", "eb"]
    with pytest.raises(DataError, match="2 inputs"):
        interpreter.call(graph, feeds["a"])
    with pytest.raises(DataError, match="N is 3 elsewhere, but 4 at axis 0"):
        interpreter.run(graph, feeds | {"b": np.zeros((8, 2), np.float32)})
    with pytest.raises(DataError, match="size 5 of axis 0 is not a multiple of 2"):
        interpreter.run(graph, feeds | {"b": np.zeros((5, 2), np.float32)})


X = np.ones((2, 4), np.float32)
BAD_FEEDS = {
    "missing": ({}, r"input 'x' is missing: feed it Tensor\[\(N, 4\), float32\]"),
    "unknown": ({"x": X, "xx": X}, r"no input 'xx'; did you mean 'x'\?"),
    "dtype": ({"x": X.astype(np.float64)}, r"wants Tensor.*float32\], but was given float64 of shape \(2, 4\).*astype"),
    "rank": ({"x": X[0]}, "1 dimensions, not 2"),
    "shape": ({"x": X[:, :3]}, "axis 1 has size 3, not 4"),
    "nan": ({"x": np.where(np.eye(2, 4), np.nan, 1).astype(np.float32)}, r"'x' has 2 NaN or infinite.*index \(0, 0\)"),
    "inf": ({"x": np.full((2, 4), -np.inf, np.float32)}, "has 8 NaN or infinite values"),
    "list": ({"x": [[1.0] * 4]}, "not list; make it a NumPy array"),
    "strings": ({"x": np.full((2, 4), "a")}, "was given <U1"),
}


@pytest.mark.parametrize("case", BAD_FEEDS)
def test_bad_feeds(case: str) -> None:
    feeds, message = BAD_FEEDS[case]
    with pytest.raises(DataError, match=message):
        interpreter.run(mlp(), feeds)


def test_unknown_keep() -> None:
    with pytest.raises(GraphError, match="no value 'logit' to keep; did you mean 'logits'"):
        interpreter.run(mlp(), {"x": X}, keep=["logit"])


def test_an_error_names_the_node() -> None:
    graph = mlp()
    with pytest.raises(ValueError) as caught:
        interpreter.step(graph, graph.node("fc1"), (X[:, :3], graph.constants["w1"].array))
    assert caught.value.__notes__ == ["while running node 'fc1': nn.dense('x': float32[2, 3], 'w1': float32[5, 4])"]


def test_a_node_with_a_wrong_attribute_names_it() -> None:
    node = Node("n", "nn.softmax", ("x",), ("y",), FrozenMap({"axes": 1}))
    with pytest.raises(GraphError, match="no attribute 'axes'; did you mean 'axis'"):
        build("g", {"x": TensorType((2,), "float32")}, ["y"], [node])


def test_threads_share_a_graph() -> None:
    graph = mlp()
    inputs = [np.random.default_rng(i).normal(size=(3, 4)).astype(np.float32) for i in range(32)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda x: interpreter.call(graph, x), inputs))
    for x, result in zip(inputs, results, strict=True):
        np.testing.assert_array_equal(result, interpreter.call(graph, x))
