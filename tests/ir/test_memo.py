"""What is remembered is what would be made, and no more than was asked for is kept."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qbench.ir.memo import Memo


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 4))), st.integers(1, 4))
def test_the_last_results_of_each_place_are_not_made_again(asked: list[tuple[str, int]], depth: int) -> None:
    memo, last, made = Memo(depth), {"a": list[int](), "b": list[int]()}, list[int]()
    for place, number in asked:
        made.clear()
        assert memo.recall(place, (number,), lambda number=number: made.append(number) or -number) == -number
        assert made == ([] if number in last[place][:depth] else [number])
        last[place] = [number, *(other for other in last[place][:depth] if other != number)]
