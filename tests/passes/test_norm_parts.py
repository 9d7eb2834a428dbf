from __future__ import annotations

import numpy as np

from qbench.passes.norm_parts import divisors, norm_parts
from tests.passes.graphs import graph, node

EPS = np.array([1e-5], np.float32)


def test_squares_that_are_averaged_and_steep_functions() -> None:
    g = graph(
        node("m", "mean", "x", axes=(1,)),
        node("d", "subtract", "x", "m"),
        node("s", "multiply", "d", "d"),
        node("v", "mean", "s", axes=(1,)),
        node("e", "add", "v", "eps"),
        node("r", "sqrt", "e"),
        node("y", "divide", "d", "r"),
        x=(2, 8, 3, 3),
        eps=EPS,
    )
    assert dict(norm_parts(g)) == {
        **dict.fromkeys(("d", "s", "v"), "default: normalization keeps float32 inside"),
        "r": "default: 8 bits near zero are too few for sqrt",
    }
    assert list(divisors(g)) == ["r"]


def test_other_products_and_means_may_be_cut() -> None:
    g = graph(
        node("s", "multiply", "x", "x"),
        node("t", "tanh", "s"),
        node("v", "mean", "x", axes=(1,)),
        node("y", "add", "t", "v"),
        x=(2, 8, 3, 3),
    )
    assert not norm_parts(g) and not divisors(g)


def test_what_divides_is_followed_to_where_it_is_made() -> None:
    g = graph(
        node("t", "tanh", "x"),
        node("a", "reshape", "t", newshape=(2, 36)),
        node("b", "transpose", "a", axes=(1, 0)),
        node("y", "divide", "b", "b"),
        x=(2, 4, 3, 3),
    )
    assert list(divisors(g)) == ["b", "a", "t"]
