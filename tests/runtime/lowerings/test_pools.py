"""Pools and sums as programs, against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from qbench.ops.float.pool import MaxPool2d
from qbench.ops.numeric.windows import Window, pool_counts
from qbench.quant.rounding import ROUNDINGS
from tests.runtime.lowerings.graphs import check, graph_of, numbers, requantize

SEED = st.integers(0, 2**31)
DTYPE = st.sampled_from(["int8", "uint8", "int16"])
PAIR = st.tuples(st.integers(1, 3), st.integers(1, 3))


@st.composite
def pools(draw):
    size, strides, dilation = draw(PAIR), draw(PAIR), draw(PAIR)
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilation, strict=True)]
    padding = tuple(draw(st.integers(0, r - 1)) for r in reach * 2)
    attrs = {"pool_size": size, "strides": strides, "padding": padding, "dilation": dilation}
    attrs["ceil_mode"] = draw(st.booleans())
    shape = (draw(st.sampled_from([1, 3, "N"])), draw(st.sampled_from([1, 5, 64, 70])), *draw(PAIR), *draw(PAIR))
    shape = (*shape[:2], shape[2] * shape[3] + 1, shape[4] * shape[5])
    assume(all(count > 0 for count in MaxPool2d(**attrs).window.counts(shape[2:])))
    return attrs, shape


@given(pool=pools(), dtype=DTYPE, seed=SEED)
def test_max_pool(pool, dtype, seed) -> None:
    attrs, shape = pool
    check(graph_of({"x": (dtype, shape)}, ("nn.max_pool2d", "x", "y", attrs)), seed)


@pytest.mark.parametrize("dtype", ["int8", "uint16"])
def test_global_max_pool(dtype) -> None:
    check(graph_of({"x": (dtype, (2, 70, 5, 6))}, ("nn.global_max_pool2d", "x", "y", {})))


@given(pool=pools(), dtype=DTYPE, seed=SEED, rounding=st.sampled_from([None, *ROUNDINGS]), include=st.booleans())
def test_average_pool(pool, dtype, seed, rounding, include) -> None:
    attrs, shape = pool
    window = Window(attrs["pool_size"], attrs["strides"], attrs["padding"], attrs["dilation"], attrs["ceil_mode"])
    counts = pool_counts(shape[2:], window, include)
    attrs |= {
        "count_include_pad": include, "denominator": int(np.lcm.reduce(counts.reshape(-1))),
        "data_zero_point": int(numbers(seed, dtype, ())), "accumulator": "int64" if dtype == "int16" else "int32",
    }  # fmt: skip
    nodes, constants = requantize("sums", "y", rounding, dtype, seed, shape, axis=1 if seed % 2 else None)
    last = "sums" if rounding is None else "y"
    check(
        graph_of(
            {"x": (dtype, shape)}, ("integer.sum_pool2d", "x", "sums", attrs), *nodes, constants=constants,
            outputs=[last],
        ),
        seed,
    )  # fmt: skip


SHAPES = st.sampled_from([(1, 70, 5, 6), ("N", 64, 7, 7), (2, 3, 4, 5), (3, 10), ("N", 6, 5), (4,)])
AXES = {4: [(2, 3), (1,), (3,), (1, 2, 3), (0,), (1, 2)], 3: [(1,), (2,), (1, 2), (-1,)], 2: [(1,), (0,)], 1: [(0,)]}


@given(
    shape=SHAPES, data=st.data(), dtype=DTYPE, seed=SEED, rounding=st.sampled_from([None, *ROUNDINGS]),
    keepdims=st.booleans(),
)  # fmt: skip
def test_sums_over_axes(shape, data, dtype, seed, rounding, keepdims) -> None:
    axes = data.draw(st.sampled_from(AXES[len(shape)]))
    assume(not (shape[0] == "N" and 0 in axes))
    assume(keepdims or len(axes) < len(shape))
    attrs = {"axes": axes, "keepdims": keepdims, "data_zero_point": int(numbers(seed, dtype, ()))}
    attrs["accumulator"] = "int64" if dtype == "int16" else "int32"
    nodes, constants = requantize("sums", "y", rounding, dtype, seed, ())
    last = "sums" if rounding is None else "y"
    check(
        graph_of(
            {"x": (dtype, shape)}, ("integer.sum", "x", "sums", attrs), *nodes, constants=constants, outputs=[last]
        ),
        seed,
    )
