"""The front door: programs and the interpreter give the same, in the same form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qbench as qb
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Node
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ops.float.norm import BatchNorm

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 2, 5, 5)).astype(np.float32)


def normalized(outputs=("y",)) -> qb.Graph:
    """A convolution, then a batch norm."""
    arrays = {"w": RNG.normal(size=(4, 2, 3, 3)), "g": [1, 2, 3, 4], "b": [0, 1, 0, 1], "m": [0, 1, 2, 3], "v": [1] * 4}
    nodes = [
        Node("c", "nn.conv2d", ("x", "w"), ("c",), FrozenMap({"padding": (1, 1, 1, 1)})),
        Node("y", BatchNorm.name, ("c", "g", "b", "m", "v"), ("y",)),
    ]
    constants = {name: Constant(np.asarray(array, np.float32)) for name, array in arrays.items()}
    return build("normalized", {"x": TensorType(("N", 2, 5, 5), "float32")}, outputs, nodes, constants)


def test_one_output_is_an_array():
    graph = normalized()
    np.testing.assert_allclose(qb.run(graph, X), qb.interpret(graph, X), rtol=1e-5, atol=1e-5)


def test_several_outputs_are_a_dict():
    graph = normalized(("c", "y"))
    fast, oracle = qb.run(graph, {"x": X}), qb.interpret(graph, {"x": X})
    assert list(fast) == list(oracle) == ["c", "y"]
    for name, array in oracle.items():
        np.testing.assert_allclose(fast[name], array, rtol=1e-5, atol=1e-5)


def test_a_batch_norm_is_folded():
    program = qb.plan(normalized())
    assert program.fallbacks == {}
    assert [step.nodes for step in program.steps if step.nodes] == [("c", "y")]


def test_a_batch_norm_is_folded_whose_parameters_are_made_of_constants():
    """As those of quantized files, which are dequantized."""
    graph = normalized()
    turned = Node("t", "negative", ("g",), ("t",))
    norm = Node("y", BatchNorm.name, ("c", "t", "b", "m", "v"), ("y",))
    made = build("made", graph.input_types(), ("y",), [graph.nodes[0], turned, norm], graph.constants)
    assert qb.plan(made).fallbacks == {}
    np.testing.assert_allclose(qb.run(made, X), qb.interpret(made, X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_kept_value_is_what_it_was_before_folding(threads):
    graph = normalized()
    program = qb.plan(graph, keep=["c"])
    assert program.fallbacks == {}
    found = program.run(X, keep=["c"], threads=threads)
    for name, array in qb.interpret(normalized_like(graph), X).items():
        np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-5)


def normalized_like(graph: qb.Graph) -> qb.Graph:
    """The same, its convolution an output too."""
    return build(graph.name, graph.input_types(), ("c", "y"), graph.nodes, graph.constants)


def test_what_is_kept_must_be_there():
    with pytest.raises(qb.GraphError, match="no value 'd' to keep"):
        qb.plan(normalized(), keep=["d"])


def test_open_sizes_get_a_program_each():
    nodes = [Node("y", "nn.relu", ("x",), ("y",))]
    graph = build("open", {"x": TensorType(("N", "L"), "float32")}, ["y"], nodes)
    for length in (3, 7, 3):
        x = RNG.normal(size=(2, length)).astype(np.float32)
        np.testing.assert_array_equal(qb.run(graph, x), np.maximum(x, 0))


def test_wrong_data_is_named():
    with pytest.raises(qb.DataError, match="input 'x'"):
        qb.run(normalized(), X[0])


def test_einsums_are_matrix_products():
    nodes = [
        Node("e", "einsum", ("x", "y"), ("e",), FrozenMap({"equation": "bihd,bjhd->bhij"})),
        Node("z", "nn.relu", ("e",), ("z",)),
    ]
    types = {"x": TensorType(("N", 5, 3, 4), "float32"), "y": TensorType(("N", 6, 3, 4), "float32")}
    graph = build("scores", types, ("z",), nodes, {})
    feeds = {name: RNG.normal(size=(2, *kind.shape[1:])).astype(np.float32) for name, kind in types.items()}
    program = qb.plan(graph, keep=["e"])
    assert not program.fallbacks
    found = program.run(feeds, keep=["e"])
    wanted = np.einsum("bihd,bjhd->bhij", feeds["x"], feeds["y"])
    np.testing.assert_allclose(found["e"], wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(qb.run(graph, feeds), np.maximum(wanted, 0), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("keep", [(), ("s",)])
def test_functions_written_as_several_ops_are_one_unless_a_part_is_kept(keep):
    nodes = [Node("s", "sigmoid", ("x",), ("s",)), Node("y", "multiply", ("x", "s"), ("y",))]
    graph = build("silu", {"x": TensorType(("N", 2, 5, 5), "float32")}, ("s", "y"), nodes, {})
    wanted = qb.interpret(graph, {"x": X})
    program = qb.plan(build("silu", graph.input_types(), ("y",), nodes, {}), keep=keep)
    assert [step.nodes for step in program.steps] == ([("s",), ("y",)] if keep else [("y",)])
    found = program.run({"x": X}, keep=keep)
    for name in ("y", *keep):
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("stored", [True, False])
def test_functions_are_one_beside_stored_integers_and_keep_every_bit_beside_integers_that_are_computed(stored):
    """A table of integers is picked from, or data are rounded by a fixed scale."""
    q = QParams(0.02, 3, "uint8")
    nodes = [
        Node("take", "take", ("t", "i"), ("rows",), FrozenMap({"axis": 0})) if stored else
        Node("round", "qnn.quantize", ("x",), ("rows",)),
        Node("real", "qnn.dequantize", ("rows",), ("e",)),
        Node("s", "sigmoid", ("e",), ("s",)),
        Node("y", "multiply", ("e", "s"), ("y",)),
    ]  # fmt: skip
    inputs = {"i": TensorType((3,), "int64")} if stored else {"x": TensorType((3, 4), "float32")}
    table = {"t": Constant(np.arange(40, dtype=np.uint8).reshape(10, 4))} if stored else {}
    qparams = {"rows": q, **({"t": q} if stored else {})}
    graph = build("silu", inputs, ("y",), nodes, table, qparams)
    assert (("s",) in [step.nodes for step in qb.plan(graph).steps]) == (not stored)


@pytest.mark.parametrize(
    "call",
    [lambda g: qb.run(g, X), lambda g: qb.interpret(g, X), qb.plan, lambda g: qb.diff(g, normalized()), qb.Decoder],
)
@pytest.mark.parametrize("graph", ["model.onnx", None])
def test_what_is_no_graph(call: Callable[[Any], object], graph: object):
    with pytest.raises(qb.GraphError, match=f"a graph is wanted, not {type(graph).__name__}: qbench.load"):
        call(graph)


def test_an_archive_of_no_graph(tmp_path: Path):
    with pytest.raises(qb.GraphError, match="a graph is wanted, not str"):
        qb.save("model.onnx", tmp_path / "a.qbench")  # pyright: ignore[reportArgumentType]
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"input 'x' has the open size 8\*h; give numbers: sizes=\{'h': ..., 'w': ...\}"),
        ({"sizes": {"h": 4}}, r"input 'x' has the open size 4\*w \+ 1; give numbers: sizes=\{'w': ...\}"),
        ({"sizes": {"8*h": 32, "w": 4}}, r"no open size '8\*h'; did you mean 'h'\? \(they have N, h, w\)"),
        ({"sizes": [32, 17]}, "sizes= takes numbers by the names of open sizes, not list"),
        ({"sizes": {"h": 4, "w": 4}, "level": "avx2"}, "level= takes a qbench.kernels.levels.Level, not str"),
    ],
)
def test_what_a_plan_needs_of_sizes_that_are_products(options: dict[str, Any], message: str):
    kind = TensorType(("N", 3, "8*h", "4*w + 1"), "float32")
    graph = build("g", {"x": kind}, ["y"], [Node("relu", "nn.relu", ("x",), ("y",))])
    with pytest.raises(qb.GraphError, match=message):
        qb.plan(graph, **options)
    assert qb.plan(graph, sizes={"h": 4, "w": 4}).run(np.ones((2, 3, 32, 17), np.float32))["y"].shape == (2, 3, 32, 17)


def test_a_product_of_which_no_factor_is_known():
    kind = TensorType(("N", "a*b"), "float32")
    graph = build("g", {"x": kind}, ["y"], [Node("relu", "nn.relu", ("x",), ("y",))])
    with pytest.raises(qb.DataError, match=r"no input says what a and b are in a\*b; qbench.load\(..., shapes="):
        qb.run(graph, np.ones((2, 12), np.float32))
