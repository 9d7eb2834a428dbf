"""Where the greatest elements are, and the first few in order, against the interpreter."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Node
from qbench.kernels.levels import Level
from qbench.runtime import interpreter
from qbench.runtime.programs import plan
from tests.graphs import graph_of
from tests.runtime.lowerings.agree import LEVELS, assert_agree
from tests.runtime.lowerings.layers import node

RNG = np.random.default_rng(0)
DTYPES = ["float32", "float32", "float16", "int8", "uint8", "int16", "uint16", "int32", "int64"]


def tied(shape: tuple[int, ...], dtype: str, wide: bool) -> np.ndarray:
    """Numbers of which many are equal, or of the whole range; -0 among the floats."""
    if dtype.startswith("float"):
        values = RNG.normal(size=shape) * 100 if wide else RNG.integers(-2, 3, shape) * RNG.choice([-1.0, 1.0], shape)
        return values.astype(dtype)
    limits = np.iinfo(dtype)
    low, high = (limits.min, limits.max) if wide else (limits.max - 3, limits.max)
    return RNG.integers(low, high, shape, dtype, endpoint=True)


def topk(data: str, **attrs: object) -> Node:
    """A node that makes values v and indices i."""
    return Node("top", "topk", (data,), ("v", "i"), FrozenMap(attrs))


shapes = st.lists(st.integers(1, 5) | st.sampled_from([17, 70]), min_size=1, max_size=5).filter(
    lambda shape: np.prod(shape) < 30_000
)


@settings(max_examples=80, deadline=None)
@given(
    shape=shapes, axis=st.integers(-1, 4), keepdims=st.booleans(), op=st.sampled_from(["argmax", "argmin"]),
    dtype=st.sampled_from(DTYPES), wide=st.booleans(), level=st.sampled_from(LEVELS), threads=st.integers(1, 3),
)  # fmt: skip
def test_arg(
    shape: list[int], axis: int, keepdims: bool, op: str, dtype: str, wide: bool, level: Level, threads: int
) -> None:
    axis = axis % len(shape) if axis >= 0 else axis
    x = tied((*shape,), dtype, wide)
    graph = graph_of({"x": x}, [node(op, "x", "y", axis=axis, keepdims=keepdims)], "y")
    assert_agree(graph, {"x": x}, level=level, threads=threads)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize("shape", [(2, 3, 4, 5), (1, 70, 2, 80)])
def test_arg_gives_the_first_that_is_not_a_number(op: str, axis: int, shape: tuple[int, ...]) -> None:
    x = RNG.normal(size=shape).astype(np.float32) + 1
    graph = graph_of({"x": x}, [node("sqrt", "x", "s"), node(op, "s", "y", axis=axis)], "y")
    assert_agree(graph, {"x": x}, threads=2)


def test_arg_behind_a_convolution_whose_channels_lie_last() -> None:
    x, w = RNG.normal(size=(1, 3, 9, 8)).astype(np.float32), RNG.normal(size=(7, 3, 3, 3)).astype(np.float32)
    conv = node("nn.conv2d", "x w", "t", strides=(1, 1), padding=(1, 1, 1, 1), dilation=(1, 1), groups=1)
    for keepdims in (False, True):
        arg = node("argmax", "t", "y", axis=1, keepdims=keepdims)
        assert_agree(graph_of({"x": x}, [conv, arg], "y", w=w), {"x": x}, threads=2)


@settings(max_examples=80, deadline=None)
@given(
    shape=shapes, axis=st.integers(-1, 4), share=st.floats(0, 1), largest=st.booleans(),
    dtype=st.sampled_from(DTYPES[:-1]), wide=st.booleans(), level=st.sampled_from(LEVELS), threads=st.integers(1, 3),
)  # fmt: skip
def test_topk(
    shape: list[int], axis: int, share: float, largest: bool, dtype: str, wide: bool, level: Level, threads: int
) -> None:
    axis = axis % len(shape) if axis >= 0 else axis
    x = tied((*shape,), dtype, wide)
    top = topk("x", k=max(1, round(share * shape[axis])), axis=axis, largest=largest)
    assert_agree(graph_of({"x": x}, [top], "v"), {"x": x}, keep=["i"], level=level, threads=threads)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("axis", [1, 3])
def test_topk_has_last_what_is_not_a_number(largest: bool, axis: int) -> None:
    x = RNG.normal(size=(2, 9, 3, 8)).astype(np.float32) + 1
    x[0, :, 0, 0] = 0  # whose logarithm is -infinity
    nodes = [node("log", "x", "s"), topk("s", k=8, axis=axis, largest=largest)]
    assert_agree(graph_of({"x": x}, nodes, "i"), {"x": x}, threads=2)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_topk_orders_the_least_integers_too(dtype: str) -> None:
    limits = np.iinfo(dtype)
    x = np.array([3, limits.min, limits.max, 0, limits.max], dtype)
    top = topk("x", k=5, axis=0, largest=True)
    for run in (interpreter.run, lambda graph, feeds: plan(graph).run(feeds)):
        got = run(graph_of({"x": x}, [top], "v"), {"x": x})["v"]
        assert np.array_equal(got, np.sort(x)[::-1])


def test_topk_of_a_detector() -> None:
    """Thousands of scores of which many are equal."""
    scores = RNG.integers(0, 500, (2, 9000)).astype(np.float32) / 500
    assert_agree(graph_of({"x": scores}, [topk("x", k=300, axis=1)], "i"), {"x": scores}, keep=["v"], threads=2)


@settings(max_examples=80, deadline=None)
@given(
    shape=shapes, op=st.sampled_from(["max", "min"]), dtype=st.sampled_from(DTYPES[3:]), keepdims=st.booleans(),
    threads=st.integers(1, 3), data=st.data(),
)  # fmt: skip
def test_extremes_of_integers(
    shape: list[int], op: str, dtype: str, keepdims: bool, threads: int, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(shape) - 1))
    axes = tuple(range(first, data.draw(st.integers(first, len(shape) - 1)) + 1))
    x = tied((*shape,), dtype, True)
    made = node(op, "x", "y", axes=axes, keepdims=keepdims)
    assert_agree(graph_of({"x": x}, [made], "y"), {"x": x}, threads=threads)


@settings(max_examples=80, deadline=None)
@given(
    shape=shapes, op=st.sampled_from(["sum", "prod"]), dtype=st.sampled_from(["int32", "int64"]),
    keepdims=st.booleans(), threads=st.integers(1, 3), data=st.data(),
)  # fmt: skip
def test_sums_and_products_of_integers_wrap_around(
    shape: list[int], op: str, dtype: str, keepdims: bool, threads: int, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(shape) - 1))
    axes = tuple(range(first, data.draw(st.integers(first, len(shape) - 1)) + 1))
    info = np.iinfo(dtype)
    x = RNG.integers(info.min, info.max, shape, dtype, endpoint=True)
    made = node(op, "x", "y", axes=axes, keepdims=keepdims)
    assert_agree(graph_of({"x": x}, [made], "y"), {"x": x}, threads=threads)
