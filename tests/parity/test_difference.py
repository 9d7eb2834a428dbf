from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qbench.parity.difference import Differences
from tests.parity.comparisons import LATER, comparison

CODES = arrays(np.int8, (3, 4, 5))


@given(CODES, CODES, st.integers(0, 2), st.integers(0, 3))
def test_integers_are_counted_exactly_however_they_are_cut(left, right, axis, cut):
    differences = Differences(False, axis if axis else None)
    for part in (slice(0, cut), slice(cut, 3)):
        differences.add(left[part], right[part])
    found = differences.done()
    distance = left.astype(int) - right
    assert (found.elements, found.different) == (60, np.count_nonzero(distance))
    assert found.max_lsb == abs(distance).max() and found.max_relative is None
    assert dict(found.histogram) == {int(d): int(np.sum(distance == d)) for d in np.unique(distance) if d}
    if axis:
        apart = np.moveaxis(distance, axis, 0).reshape(distance.shape[axis], -1)
        assert found.channels == tuple(map(int, np.count_nonzero(apart, axis=1)))
        assert found.channel_max == tuple(map(float, abs(apart).max(axis=1)))


def test_far_accumulators_stand_at_the_ends_of_the_histogram():
    differences = Differences(False)
    differences.add(np.array([2**31 - 1, 0, 5], np.int32), np.array([-(2**31), 300, 4], np.int32))
    assert differences.done().histogram == ((-255, 1), (1, 1), (255, 1))
    assert differences.done().max_lsb == 2**32 - 1


def test_reals_are_compared_by_the_largest_of_their_tensor():
    left, right = np.array([[1.0, 2e-3, 0.5, 4.0]], np.float32), np.array([[1.0, 1e-3, 0.5 + 1e-6, 4.004]], np.float32)
    differences = Differences(True, 1)
    differences.add(left, right)
    found = differences.done()
    assert (found.different, found.channels) == (2, (0, 1, 0, 1))
    assert found.max_lsb is None and np.isclose(found.max_relative, 0.004 / 4.004, rtol=1e-3)
    assert found.histogram == ((-4, 2),)


def test_numbers_and_no_numbers_are_infinitely_far_apart():
    nan, inf = np.nan, np.inf
    differences = Differences(True)
    differences.add(np.array([nan, nan, inf, inf, 0.0]), np.array([nan, 1.0, inf, -inf, 0.0]))
    assert (differences.done().different, differences.done().max_relative) == (2, inf)
    assert differences.done().histogram == ((0, 2),)


def test_nothing_differs_in_no_elements():
    differences = Differences(False, 0)
    differences.add(np.zeros((0, 3), np.int8), np.zeros((0, 3), np.int8))
    assert (differences.done().elements, differences.done().rate, differences.done().max_lsb) == (0, 0.0, 0)


def test_layers_that_differ_end_to_end_alone_are_counted_apart() -> None:
    whole = comparison()
    same, apart, real = whole.layers
    told = str(replace(whole, layers=(replace(same, end_to_end=LATER), apart, real)))
    assert "33 of 2,010 elements differ, in 2 of 3 layers" in told
    assert "end to end 803, in 3;" in told
