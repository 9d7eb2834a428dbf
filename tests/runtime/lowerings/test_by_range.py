"""Integers by the range that data have at run time, and products of them: the interpreter's, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from qbench.errors import DataError
from qbench.ir.graph import Graph, Node
from qbench.kernels.levels import Level
from qbench.runtime.programs import plan
from tests.graphs import graph_of
from tests.runtime.lowerings.agree import LEVELS, assert_agree
from tests.runtime.lowerings.layers import node

Arrays = dict[str, NDArray[Any]]


def ranged(x: NDArray[np.float32], **constants: NDArray[Any]) -> Graph:
    """x -> DynamicQuantizeLinear -> MatMulInteger; what both make leaves."""
    nodes = [
        node("nn.relu" if (x >= 0).all() else "negative", "x", "t"),
        Node("q", "qnn.dynamic_quantize", ("t",), ("q", "scale", "zero")),
        node("integer.matmul_dynamic", "q w zero z", "sums"),
    ]
    return graph_of({"x": x}, nodes, "sums", **constants)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), level=st.sampled_from(LEVELS), threads=st.integers(1, 3),
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=3), depth=st.integers(1, 70), units=st.integers(1, 40),
    kind=st.sampled_from(["int8", "uint8"]), zeros=st.sampled_from(["middle", "one", "each"]),
    offset=st.sampled_from([-1.0, 0.0, 2.0]),
)  # fmt: skip
def test_products(
    seed: int, level: Level, threads: int, shape: list[int], depth: int, units: int, kind: str, zeros: str,
    offset: float,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(*shape, depth)) + offset).astype(np.float32)
    middle = 128 if kind == "uint8" else 0
    at = np.array(middle)
    w = (rng.integers(-128, 128, (depth, units)) + middle).astype(kind)
    if zeros != "middle":
        at = middle + rng.integers(-128, 128, 1 if zeros == "one" else units)
    graph = ranged(x, w=w, z=at.astype(kind))
    assert_agree(graph, {"x": x}, keep=("q", "scale", "zero"), level=level, threads=threads)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), level=st.sampled_from(LEVELS), threads=st.integers(1, 3),
    inner=st.integers(1, 6), outputs=st.integers(1, 20), groups=st.sampled_from(["one", "two", "each"]),
    window=st.tuples(*[st.integers(1, 3)] * 2), strides=st.tuples(*[st.integers(1, 2)] * 2),
    padding=st.tuples(*[st.integers(0, 2)] * 4), kind=st.sampled_from(["int8", "uint8"]),
    zeros=st.sampled_from(["middle", "one", "each"]),
)  # fmt: skip
def test_convolutions(
    seed: int, level: Level, threads: int, inner: int, outputs: int, groups: str, window: tuple[int, int],
    strides: tuple[int, int], padding: tuple[int, int, int, int], kind: str, zeros: str,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    count = {"one": 1, "two": 2, "each": max(2, outputs)}[groups]
    inner, outputs = (1, count) if groups == "each" else (inner, outputs * count)
    x = (rng.normal(size=(2, inner * count, 5, 6)) + rng.uniform(-1, 1)).astype(np.float32)
    middle = 128 if kind == "uint8" else 0
    w = (rng.integers(-128, 128, (outputs, inner, *window)) + middle).astype(kind)
    at = np.array(middle)
    if zeros != "middle":
        at = middle + rng.integers(-128, 128, 1 if zeros == "one" else outputs)
    attrs = {"strides": strides, "padding": padding, "groups": count}
    nodes = [
        node("negative", "x", "t"),
        Node("q", "qnn.dynamic_quantize", ("t",), ("q", "scale", "zero")),
        node("integer.conv2d_dynamic", "q w zero z", "sums", **attrs),
    ]
    graph = graph_of({"x": x}, nodes, "sums", w=w, z=at.astype(kind))
    fallbacks = int(groups == "two" and (inner, outputs) != (1, count) and bool((at != middle).any()))
    assert_agree(graph, {"x": x}, level=level, threads=threads, fallbacks=fallbacks)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), level=st.sampled_from(LEVELS), threads=st.integers(1, 3), window=st.booleans(),
    units=st.integers(1, 40), scaled=st.sampled_from(["not", "by one", "by a constant", "each"]),
    zeros=st.booleans(), biased=st.booleans(), clamped=st.booleans(), swapped=st.booleans(),
)  # fmt: skip
def test_sums_made_real(
    seed: int, level: Level, threads: int, window: bool, units: int, scaled: str, zeros: bool, biased: bool,
    clamped: bool, swapped: bool,
) -> None:  # fmt: skip
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=(2, 3, 5, 7)) + 0.5).astype(np.float32)
    w = rng.integers(-128, 128, (units, 3, 2, 2) if window else (7, units)).astype(np.int8)
    each = np.array(rng.integers(-9, 9, units) if zeros else 0, np.int8)
    factors = rng.uniform(0.001, 0.1, (units, 1, 1) if window else units).astype(np.float32)
    arrays = {"w": w, "z": each, "b": rng.normal(size=units).astype(np.float32)}
    last = "real"
    nodes = [
        node("negative", "x", "t"),
        Node("q", "qnn.dynamic_quantize", ("t",), ("q", "scale", "zero")),
        node(f"integer.{'conv2d' if window else 'matmul'}_dynamic", "q w zero z", "sums"),
        node("cast", "sums", last, dtype="float32"),
    ]
    if scaled != "not":
        if scaled == "each":
            arrays["f"] = factors
            nodes.append(node("multiply", "scale f", "factor"))
        elif scaled == "by a constant":
            arrays["factor"] = np.array([0.01], np.float32)
        other = "scale" if scaled == "by one" else "factor"
        nodes.append(node("multiply", f"{other} {last}" if swapped else f"{last} {other}", last := "scaled"))
    if biased:
        nodes.append(node("nn.bias_add", f"{last} b", last := "biased", axis=1 if window else 3))
    if clamped:
        nodes.append(node("nn.relu", last, last := "clamped"))
    graph = graph_of({"x": x}, nodes, last, **arrays)
    assert_agree(graph, {"x": x}, level=level, threads=threads, exact=True)
    assert not any(timing.kernel.startswith("cast") for timing in plan(graph, level=level).profile({"x": x}, repeat=1))


@pytest.mark.parametrize("scale", [(1, 3, 1), (2, 1, 1), ()])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_other_scales_and_reals_are_steps_of_their_own(scale: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 3, 7)).astype(np.float32)
    feeds = {"x": x, "s": rng.uniform(0.1, 1, scale).astype(dtype)}
    nodes = [
        Node("q", "qnn.dynamic_quantize", ("x",), ("q", "scale", "zero")),
        node("integer.matmul_dynamic", "q w zero z", "sums"),
        node("cast", "sums", "real", dtype=dtype),
        node("multiply", "real s", "y"),
    ]
    w = rng.integers(-8, 8, (7, 4)).astype(np.int8)
    graph = graph_of(feeds, nodes, "y", w=w, z=np.array(0, np.int8))
    assert_agree(graph, feeds, exact=dtype == "float32", fallbacks=int(dtype == "float16"))


@pytest.mark.parametrize("value", [0.0, -2.0, 3.0])
def test_data_that_are_all_alike(value: float) -> None:
    x = np.full((3, 5), value, np.float32)
    w = np.arange(10, dtype=np.int8).reshape(5, 2)
    assert_agree(ranged(x, w=w, z=np.array(0, np.int8)), {"x": x}, keep=("q", "scale", "zero"))


def test_nan_is_an_error() -> None:
    x = np.ones((3, 5), np.float32)
    graph = ranged(x, w=np.ones((5, 2), np.int8), z=np.array(0, np.int8))
    x[1, 2] = np.nan
    with pytest.raises(DataError, match="NaN"):
        plan(graph).run({"x": x})
