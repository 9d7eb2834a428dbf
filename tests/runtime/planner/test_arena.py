"""The arena: buffers that live at the same time never share a byte."""

from hypothesis import given
from hypothesis import strategies as st

from qbench.runtime.planner.arena import ALIGNMENT, SLACK, Lifetime, arrange

SPANS = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted)
LIFETIMES = st.lists(st.builds(lambda size, span: Lifetime(size, *span), st.integers(0, 5000), SPANS), max_size=12)


@given(LIFETIMES)
def test_buffers_that_meet_lie_apart(lifetimes):
    offsets, total = arrange(lifetimes)
    for i, (one, start) in enumerate(zip(lifetimes, offsets, strict=True)):
        assert start % ALIGNMENT == 0
        assert not one.size or start + one.size + SLACK <= total
        for other, begin in list(zip(lifetimes, offsets, strict=True))[i + 1 :]:
            if one.size and other.size and one.meets(other):
                assert start + one.size + SLACK <= begin or begin + other.size + SLACK <= start


def test_buffers_that_never_meet_share_their_bytes():
    offsets, total = arrange([Lifetime(1000, 0, 1), Lifetime(1000, 2, 3), Lifetime(1000, 4, 4)])
    assert offsets == [0, 0, 0]
    assert total < 2000
