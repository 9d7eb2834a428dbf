"""Views: the same memory under another shape, whatever the order that it lies in."""

from __future__ import annotations

import math
from itertools import pairwise, permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qbench.runtime.lowerings.views import reshaped_axes
from qbench.runtime.programs import plan
from tests.runtime.lowerings.graphs import check, graph_of


@st.composite
def reshapes(draw) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """A shape, another one of as many elements, and the order in which the axes of the first lie."""
    factors = draw(st.lists(st.sampled_from([1, 2, 2, 3, 5]), max_size=5))

    def grouped() -> tuple[int, ...]:
        cuts = sorted(draw(st.lists(st.integers(0, len(factors)), max_size=3)))
        edges = [0, *cuts, len(factors)]
        return tuple(math.prod(factors[a:b]) for a, b in pairwise(edges))

    before, after = grouped(), grouped()
    return before, after, tuple(draw(st.permutations(range(len(before)))))


@given(reshapes())
def test_another_shape_lies_in_the_order_that_is_found_if_in_any(case) -> None:
    before, after, axes = case
    x = np.arange(math.prod(before)).reshape(before)
    memory, wanted = x.transpose(axes).ravel(), x.reshape(after)

    def fits(order: tuple[int, ...]) -> bool:
        return bool((wanted.transpose(order).ravel() == memory).all())

    found = reshaped_axes(before, after, axes)
    if found is None:
        assert not any(map(fits, permutations(range(len(after)))))
    else:
        assert sorted(found) == list(range(len(after)))
        assert fits(found)


@given(
    dtype=st.sampled_from(["int8", "uint8", "float32"]), sides=st.lists(st.integers(2, 5), min_size=2, max_size=3),
    channels=st.integers(2, 20), batch=st.sampled_from([1, 2, "N"]), seed=st.integers(0, 99),
)  # fmt: skip
def test_heads_of_a_detector_are_joined_without_turning_them(dtype, sides, channels, batch, seed) -> None:
    """Channels-last images flattened, joined along their pixels, and channels made last: parts are copied, no more."""
    feeds, nodes = {}, []
    for i, side in enumerate(sides):
        feeds[f"x{i}"] = dtype, (batch, channels, side, side)
        nodes += [
            ("nn.max_pool2d", f"x{i}", f"p{i}", {"pool_size": (1, 1), "strides": (1, 1)}),
            ("reshape", f"p{i}", f"f{i}", {"newshape": (batch, channels, side * side)}),
        ]
    joined = " ".join(f"f{i}" for i in range(len(sides)))
    nodes += [("concatenate", joined, "all", {"axis": 2}), ("transpose", "all", "y", {"axes": (0, 2, 1)})]
    graph = graph_of(feeds, *nodes)
    check(graph, seed)
    assert plan(graph).places["all"].axes == (0, 2, 1)
