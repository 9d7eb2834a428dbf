"""Sums that grow along an axis, against the interpreter."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.kernels.levels import Level
from qbench.runtime.programs import plan
from tests.graphs import graph_of
from tests.runtime.lowerings.agree import LEVELS, assert_agree
from tests.runtime.lowerings.layers import node

RNG = np.random.default_rng(0)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(1, 7) | st.just(40), min_size=1, max_size=5).filter(lambda shape: np.prod(shape) < 9000),
    axis=st.integers(-1, 4), exclusive=st.booleans(), reverse=st.booleans(),
    dtype=st.sampled_from(["float32", "int32", "int64"]), level=st.sampled_from(LEVELS), threads=st.integers(1, 3),
)  # fmt: skip
def test_cumsum(
    shape: list[int], axis: int, exclusive: bool, reverse: bool, dtype: str, level: Level, threads: int
) -> None:
    x = RNG.normal(size=shape) * 100 if dtype == "float32" else RNG.integers(-(2**31), 2**31, shape)
    x = x.astype(dtype)
    axis = axis % len(shape) if axis >= 0 else axis
    graph = graph_of({"x": x}, [node("cumsum", "x", "y", axis=axis, exclusive=exclusive, reverse=reverse)], "y")
    assert not plan(graph).fallbacks
    assert_agree(graph, {"x": x}, level=level, threads=threads)


def test_cumsum_along_channels_that_lie_last() -> None:
    x, w = RNG.normal(size=(1, 3, 9, 8)).astype(np.float32), RNG.normal(size=(7, 3, 3, 3)).astype(np.float32)
    conv = node("nn.conv2d", "x w", "t", strides=(1, 1), padding=(1, 1, 1, 1), dilation=(1, 1), groups=1)
    graph = graph_of({"x": x}, [conv, node("cumsum", "t", "y", axis=1)], "y", w=w)
    assert not plan(graph).fallbacks
    assert_agree(graph, {"x": x}, threads=2)
