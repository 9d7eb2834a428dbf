"""The arena: buffers that live at the same time never share a byte."""

from hypothesis import given
from hypothesis import strategies as st

from qbench.runtime.guard import PAGE
from qbench.runtime.memory import SLACK
from qbench.runtime.planner.arena import ALIGNMENT, Lifetime, arrange, spread

SPANS = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted)
LIFETIMES = st.lists(st.builds(lambda size, span: Lifetime(size, *span), st.integers(0, 5000), SPANS), max_size=12)


@given(LIFETIMES)
def test_buffers_that_meet_lie_apart(lifetimes):
    offsets, total = arrange(lifetimes)
    for i, (one, start) in enumerate(zip(lifetimes, offsets, strict=True)):
        assert start % ALIGNMENT == 0
        assert not one.size or start + one.size + SLACK <= total
        for other, begin in list(zip(lifetimes, offsets, strict=True))[i + 1 :]:
            if one.size and other.size and one.first <= other.last and other.first <= one.last:
                assert start + one.size + SLACK <= begin or begin + other.size + SLACK <= start


@given(st.lists(st.builds(lambda size, span: Lifetime(size, *span), st.integers(0, 700), SPANS), max_size=40))
def test_each_lies_at_the_lowest_free_place_the_largest_first(lifetimes):
    """As by hand: from the lowest multiple of the alignment up, until none that it meets is in the way."""
    offsets, total = arrange(lifetimes)
    placed = list[tuple[Lifetime, range]]()
    for number in sorted(range(len(lifetimes)), key=lambda n: -lifetimes[n].size):
        one, place = lifetimes[number], 0
        wanted = -(-(one.size + SLACK) // ALIGNMENT) * ALIGNMENT if one.size else 0
        beside = [taken for other, taken in placed if other.first <= one.last and one.first <= other.last]
        while any(place < taken.stop and taken.start < place + wanted for taken in beside):
            place += ALIGNMENT
        assert offsets[number] == place
        placed.append((one, range(place, place + wanted)))
    assert total == max((taken.stop for _, taken in placed), default=0)


def test_buffers_that_never_meet_share_their_bytes():
    offsets, total = arrange([Lifetime(1000, 0, 1), Lifetime(1000, 2, 3), Lifetime(1000, 4, 4)])
    assert offsets == [0, 0, 0]
    assert total < 2000


@given(LIFETIMES)
def test_guarded_buffers_end_at_pages_that_lie_in_gaps(lifetimes):
    offsets, total, gaps = spread(lifetimes)
    used = [(start, start + one.size) for one, start in zip(lifetimes, offsets, strict=True) if one.size]
    assert [byte for gap, (start, end) in zip(gaps, used, strict=True) for byte in (*gap, start, end)] == [
        byte
        for last, span in zip([0, *(end for _, end in used)], used, strict=False)
        for byte in (last, span[0], *span)
    ]
    assert total == max((end for _, end in used), default=0)
    for (_, end), gap in zip(used, gaps[1:], strict=False):
        page = -(-(end + SLACK) // PAGE) * PAGE
        assert page - ALIGNMENT < end + SLACK <= page
        assert page + PAGE <= gap[1]
    assert all(start % ALIGNMENT == 0 for start in offsets)
