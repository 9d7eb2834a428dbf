"""Sizes as expressions agree with numbers, and equal ones are the same."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.errors import GraphError
from qbench.ir.sizes import Size, size_of

Pair = tuple[Size, Callable[[dict[str, int]], int]]
LEAVES = st.one_of(
    st.sampled_from("HNW").map(lambda s: (size_of(s), lambda values: values[s])),
    st.integers(-3, 9).map(lambda n: (size_of(n), lambda values: n)),
)


def joined(pairs: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    def both(left: Pair, right: Pair, mark: str) -> Pair:
        (a, f), (b, g) = left, right
        if mark == "+":
            return a + b, lambda values: f(values) + g(values)
        if mark == "-":
            return a - b, lambda values: f(values) - g(values)
        return a * b, lambda values: f(values) * g(values)

    def divided(pair: Pair, by: int, up: bool) -> Pair:
        size, f = pair
        if up:
            return (size / by).ceil(), lambda values: -(-f(values) // by)
        return size // by, lambda values: f(values) // by

    return st.builds(both, pairs, pairs, st.sampled_from("+-*")) | st.builds(
        divided, pairs, st.integers(1, 6), st.booleans()
    )


EXPRESSIONS = st.recursive(LEAVES, joined, max_leaves=6)
VALUES = st.fixed_dictionaries({s: st.integers(0, 40) for s in "HNW"})


@given(EXPRESSIONS, VALUES)
def test_replacing_symbols_gives_the_number(pair: Pair, values: dict[str, int]) -> None:
    size, compute = pair
    assert size.replaced(values).number == compute(values)


@given(EXPRESSIONS)
def test_text_means_the_same_size(pair: Pair) -> None:
    size, _ = pair
    assert size_of(str(size)) == size
    assert hash(size_of(str(size))) == hash(size)


@given(EXPRESSIONS, EXPRESSIONS)
def test_products_divide_exactly(left: Pair, right: Pair) -> None:
    (a, _), (b, _) = left, right
    if b.terms:
        assert (a * b) / b == a == (a * b) // b


@given(EXPRESSIONS, VALUES)
def test_least(pair: Pair, values: dict[str, int]) -> None:
    size, compute = pair
    if size.least is not None and not size.quotients:
        assert compute({symbol: value + 1 for symbol, value in values.items()}) >= size.least


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("(H - 1)//2 + 1", "(H + 1)//2"),
        ("((H + 1)//2 + 1)//2", "(H + 3)//4"),
        ("(2*H + 3)//4", "(H + 1)//2"),
        ("N*(P + S)", "P*N + N*S"),
        ("12*N*(P + S)//(P + S)", "12*N"),
        ("H - H + 3", "3"),
    ],
)
def test_equal_sizes_are_the_same(one: str, other: str) -> None:
    assert size_of(one) == size_of(other)


def test_fractions_become_whole() -> None:
    half = size_of("H") * Fraction(1, 2)
    assert (half.floor().dim, half.ceil().dim, (half * 2).dim) == ("H//2", "(H + 1)//2", "H")
    with pytest.raises(GraphError, match="no whole size"):
        _ = half.dim
    with pytest.raises(GraphError, match="cannot be divided"):
        _ = size_of("H") / size_of("W")
    assert (size_of("H") // size_of("W")).dim == "H//W"
    with pytest.raises(ZeroDivisionError):
        _ = size_of("H") // 0


def test_sizes_that_explode_are_refused() -> None:
    with pytest.raises(GraphError, match="more than 200 terms"):
        size_of("*".join("(a + b + c + d)" for _ in range(20)))
    with pytest.raises(GraphError, match="neither a size"):
        size_of("(" * 60 + "N" + ")" * 60)
