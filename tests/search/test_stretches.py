"""Which stretches of a network are spared."""

from __future__ import annotations

from itertools import combinations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from qbench.search.stretches import Apart, Stretch, worst_of

AMOUNTS = st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10), st.floats(0.1, 5)), min_size=1, max_size=7)


def apart(amounts: list[tuple[float, float, float]], room: tuple[float, float]) -> Apart:
    stretches = [Stretch((), {"a": a, "b": b}, saved) for a, b, saved in amounts]
    return Apart(stretches, {"a": room[0], "b": room[1]})


def fits(found: Apart, spared: list[Stretch], share: float = 1.0) -> bool:
    left = [stretch for stretch in found.stretches if stretch not in spared]
    return all(sum(one.noise[name] for one in left) <= share * most for name, most in found.room.items())


@given(AMOUNTS, st.tuples(st.floats(0, 20), st.floats(0, 20)), st.sampled_from([1.0, 0.5, 0.1]))
def test_the_others_keep_below_what_may_be_and_none_is_spared_for_nothing(
    amounts: list[tuple[float, float, float]], room: tuple[float, float], share: float
) -> None:
    found = apart(amounts, room)
    spared = found.spared(share)
    assert fits(found, spared, share)
    assert not any(fits(found, [*some], share) for some in combinations(spared, max(0, len(spared) - 1)) if spared)


def test_most_noise_for_the_time_comes_first() -> None:
    dear, cheap, other = (found := apart([(4, 0, 4), (3, 0, 1), (0, 1, 1)], (4.5, 1.0))).stretches
    assert found.spared() == [cheap]
    assert {*found.spared(0.8)} == {dear, other}, "cheap is enough by then"
    assert {*found.spared(0.2)} == {dear, other, cheap}


def test_the_most_of_every_output() -> None:
    assert worst_of([{"a": 1.0, "b": 5.0}, {"a": 2.0, "b": 3.0}]) == {"a": 2.0, "b": 5.0}
    with pytest.raises(IndexError):
        worst_of([])
