"""Chains of steps a few rows at a time give the bits of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from qbench.errors import DataError
from qbench.ir.build import build
from qbench.ir.graph import Constant, Graph
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.runtime.interpreter import run
from qbench.runtime.programs import plan
from qbench.runtime.schedule import Schedule
from tests.runtime.lowerings.agree import LEVELS
from tests.runtime.lowerings.layers import node, requantize

Feeds = dict[str, NDArray[Any]]


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains of any size run in strips of few rows."""
    monkeypatch.setattr("qbench.runtime.planner.chains.LARGE", 0)
    monkeypatch.setattr("qbench.runtime.strips.BUDGET", 700)


def attention(
    heads: int,
    rows: int,
    columns: int,
    depth: int,
    shared: bool = False,
    turned: bool = True,
    kind: str = "float32",
    masked: bool = False,
    width: int = 5,
) -> tuple[Graph, Feeds]:
    """Products of queries and keys, softmax, products with values; what makes the values stands in between."""
    keys = (heads, columns, depth) if turned else (heads, depth, columns)
    shapes = {"q": (heads, rows, depth), "k": keys, "v": (1 if shared else heads, columns, width)}
    rng, inputs = np.random.default_rng(0), {name: TensorType(shape, kind) for name, shape in shapes.items()}
    if kind == "float32":
        nodes = [node("nn.batch_matmul", "q k", "scores", transpose_rhs=turned)]
        nodes += [node("divide", "scores eight", "less"), node("add", "mask less", "seen")] if masked else []
        nodes.append(node("nn.softmax", nodes[-1].outputs[0], "p"))
        nodes += [node("nn.relu", "v", "positive"), node("nn.batch_matmul", "p positive", "y")]
        shapes |= {"mask": (1, 1, columns) if shared else (heads, rows, columns)} if masked else {}
        inputs = {name: TensorType(shape, kind) for name, shape in shapes.items()}
        feeds = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
        constants = {"eight": Constant(np.array(8, np.float32))} if masked else {}
        return build("attention", inputs, ["y"], nodes, constants), feeds
    zeros = {"lhs_zero_point": 7, "rhs_zero_point": 100}
    product = node("integer.batch_matmul", "q k", "sums", transpose_rhs=turned, **zeros)
    ends, constants = requantize("sums", "scores", np.full((1, 1, 1), 2.0**-9), "tflite_single", "int16", 0)
    nodes = [product, ends, node("qnn.dequantize", "scores", "real"), node("nn.softmax", "real", "p")]
    nodes += [node("qnn.quantize", "p", "codes"), node("nn.relu", "v", "positive")]
    nodes.append(node("integer.batch_matmul", "codes positive", "sums_of_values", rhs_zero_point=3))
    made, more = requantize("sums_of_values", "y", np.full((1, 1, 1), 2.0**-8), "tflite_single", "uint8", 9)
    one = QParams(1.0, 0, kind)
    qparams = {"scores": QParams(2.0**-5, 0, "int16"), "codes": QParams(1 / 256, 0, "uint8"), "v": one, "positive": one}
    feeds = {name: rng.integers(0, 256, shape).astype(kind) for name, shape in shapes.items()}
    return build("attention", inputs, ["y"], [*nodes, made], constants | more, qparams), feeds


def softmaxes(graph: Graph, keep: Sequence[str] = (), observe: Sequence[tuple[str, int | None]] = ()) -> int:
    """How often the softmax runs."""
    instructions = Schedule(plan(graph), (), keep, observe=observe).instructions
    return [one.kernel.name for one in instructions].count("float.softmax")


@pytest.mark.parametrize("kind", ["float32", "uint8"])
@pytest.mark.parametrize("level", LEVELS)
@settings(max_examples=25, deadline=None)
@given(
    heads=st.integers(1, 3),
    rows=st.integers(1, 23),
    columns=st.integers(1, 40),
    depth=st.integers(1, 9),
    shared=st.booleans(),
    turned=st.booleans(),
    masked=st.booleans(),
    threads=st.integers(1, 3),
)
def test_attention(level, kind, heads, rows, columns, depth, shared, turned, masked, threads):
    graph, feeds = attention(heads, rows, columns, depth, shared, turned, kind, masked)
    program, wanted = plan(graph, level=level), run(graph, feeds)["y"]
    got = program.run(feeds, threads=threads)["y"]
    if kind == "float32":
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)
        whole = plan(graph, keep=["p"], level=level).run(feeds, keep=["p"])
        np.testing.assert_array_equal(got, whole["y"])
    else:
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("kind, masked, strips", [("float32", False, 4), ("float32", True, 7), ("uint8", False, 7)])
def test_a_few_rows_of_one_group_at_a_time(kind, masked, strips):
    """As many as fit: with 700 bytes, 2 rows of what 40 columns make, or 1, of 7 rows in 3 groups."""
    graph, feeds = attention(3, 7, 40, 8, kind=kind, masked=masked)
    assert softmaxes(graph) == 3 * strips
    rows = [timing for timing in plan(graph).profile(feeds, repeat=3, threads=1) if timing.kernel == "float.softmax"]
    assert len(rows) == 1  # the times of all strips in one


@st.composite
def elementwise(draw: st.DrawFn) -> tuple[Graph, Feeds]:
    """Ops in a row on one tensor; another operand repeats along any axes."""
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=5)))
    smaller = tuple(size if draw(st.booleans()) else 1 for size in shape)
    rng, inputs = np.random.default_rng(0), {"x": TensorType(shape, "float32"), "z": TensorType(smaller, "float32")}
    nodes = [node("multiply", "x two", "a"), node("add", draw(st.sampled_from(["a z", "z a"])), "b")]
    nodes += [node("subtract", "b two", "c"), node("maximum", "c z", "y")]
    feeds = {name: rng.normal(size=given.shape).astype(np.float32) for name, given in inputs.items()}
    return build("elements", inputs, ["y"], nodes, {"two": Constant(np.array(2, np.float32))}), feeds


@given(elementwise(), st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_elementwise_ops(case, threads):
    graph, feeds = case
    whole = plan(graph, keep=["a", "b", "c"]).run(feeds, keep=["a", "b", "c"])["y"]
    np.testing.assert_array_equal(plan(graph).run(feeds, threads=threads)["y"], whole)
    np.testing.assert_allclose(whole, run(graph, feeds)["y"], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 20, 30, 3), (1, 450, 2, 2), (600, 1, 3)])
def test_short_rows_are_taken_together(shape):
    """1,800 numbers in strips of 700 bytes at most, however short their last axis is."""
    nodes = [node("multiply", "x two", "a"), node("add", "a two", "y")]
    constants = {"two": Constant(np.array(2, np.float32))}
    graph = build("short", {"x": TensorType(shape, "float32")}, ["y"], nodes, constants)
    assert 2 < len(Schedule(plan(graph), (), ()).instructions) <= 2 * -(-1800 * 4 // 600)


@pytest.mark.parametrize("kind", ["float32", "uint8"])
def test_what_somebody_wants_to_see_is_made_as_a_whole(kind):
    graph, feeds = attention(3, 7, 40, 8, kind=kind)
    program, values = plan(graph), run(graph, feeds, keep=["p"])
    assert (softmaxes(graph, keep=["p"]), softmaxes(graph, observe=[("p", None)])) == (1, 1)
    for _ in range(2):
        np.testing.assert_allclose(program.run(feeds, keep=["p"])["p"], values["p"], rtol=0, atol=1e-6)
        np.testing.assert_allclose(program.run(feeds)["y"], values["y"], rtol=0, atol=1e-5)


def test_what_two_steps_read_is_made_as_a_whole():
    graph, feeds = attention(2, 5, 40, 8)
    both = [*graph.nodes, node("nn.relu", "scores", "seen")]
    graph = build("both", {name: graph.types[name] for name in graph.inputs}, ["y", "seen"], both)
    wanted = run(graph, feeds)
    for name, array in plan(graph).run(feeds).items():
        np.testing.assert_allclose(array, wanted[name], rtol=0, atol=1e-5)


def test_nan_is_found_in_any_strip():
    graph, feeds = attention(2, 9, 70, 8)
    feeds["k"] = np.abs(feeds["k"]) + 1
    nodes = [*graph.nodes[:-1], node("qnn.quantize", "p", "codes"), node("qnn.dequantize", "codes", "real")]
    nodes.append(node("nn.batch_matmul", "real positive", "y"))
    q = {"codes": QParams(1 / 256, 0, "uint8")}
    graph = build("nan", {name: graph.types[name] for name in graph.inputs}, ["y"], nodes, qparams=q)
    program = plan(graph)
    np.testing.assert_allclose(program.run(feeds)["y"], run(graph, feeds)["y"], rtol=0, atol=1e-5)
    feeds["q"][1, 3] = 3e38
    with pytest.raises(DataError, match="'p' holds NaN"):
        program.run(feeds, threads=2)


def test_a_value_that_a_step_reads_twice_is_made_before_it():
    rng = np.random.default_rng(0)
    nodes = [node("nn.softmax", "x", "p"), node("nn.batch_matmul", "p p", "squares", transpose_rhs=True)]
    nodes += [node("nn.softmax", "squares", "q"), node("multiply", "q q", "y")]
    graph = build("twice", {"x": TensorType((2, 9, 9), "float32")}, ["y"], nodes)
    feeds = {"x": rng.normal(size=(2, 9, 9)).astype(np.float32)}
    np.testing.assert_allclose(plan(graph).run(feeds)["y"], run(graph, feeds)["y"], rtol=0, atol=1e-6)


def test_nan_is_found_in_what_a_chain_makes():
    graph, feeds = attention(2, 9, 70, 8, width=20)
    feeds["k"] = np.abs(feeds["k"]) + 1
    nodes = [*graph.nodes, node("qnn.quantize", "y", "codes"), node("nn.relu", "y", "seen")]
    q = {"codes": QParams(1 / 256, 0, "uint8")}
    graph = build("nan", {name: graph.types[name] for name in graph.inputs}, ["codes", "seen"], nodes, qparams=q)
    program = plan(graph)
    assert program.run(feeds)["codes"].shape == (2, 9, 20)
    feeds["q"][1, 3] = 3e38
    with pytest.raises(DataError, match="'y' holds NaN"):
        program.run(feeds, threads=2)
