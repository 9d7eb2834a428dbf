"""Channel means: exact, whatever the order."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qbench.calibration.means import ChannelMeans
from qbench.runtime.tallies import Tally

SAMPLES = st.lists(
    hnp.arrays(np.float32, (1, 3, 2, 2), elements=st.floats(-(2.0**60), 2.0**60, width=32)), min_size=1, max_size=6
)


@given(SAMPLES, st.randoms())
def test_the_order_of_samples_does_not_matter(samples: list[np.ndarray], random: object) -> None:
    parts = [ChannelMeans.of(sample, 1) for sample in samples]
    shuffled = list(parts)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    merged = reduce(ChannelMeans.merge, parts)
    assert merged == reduce(ChannelMeans.merge, shuffled)
    expected = np.mean([sample.mean(axis=(0, 2, 3), dtype=np.float64) for sample in samples], axis=0)
    largest = max(np.abs(sample).max() for sample in samples)
    np.testing.assert_allclose(merged.values, expected, rtol=1e-6, atol=1e-6 * largest)


@given(hnp.arrays(np.float32, (7, 3), elements=st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_sums_over_samples_are_exact(samples: np.ndarray) -> None:
    tally = Tally(1, 3)
    for sample in samples:
        tally.add(sample[None])
    exact = tuple(sum(int(Fraction(float(x)) * 2**149) for x in column) for column in samples.T)
    assert ChannelMeans.taken(tally) == ChannelMeans(exact, 7)


@pytest.mark.parametrize("shape", [(1, 5, 1, 1), (1, 3, 4, 5), (2, 4, 1, 3), (1, 2, 9, 9)])
@pytest.mark.parametrize("channels_last", [False, True])
def test_a_mean_is_that_of_all_but_the_channels(shape: tuple[int, ...], channels_last: bool) -> None:
    sample = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    expected = sample.mean(axis=(0, 2, 3), dtype=np.float64).astype(np.float32)
    given = np.ascontiguousarray(sample.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2) if channels_last else sample
    np.testing.assert_array_equal(ChannelMeans.of(given, 1).values, expected.astype(np.float64))


def test_the_smallest_number_is_not_lost() -> None:
    tiny = np.full((1, 2), 2.0**-149, np.float32)
    assert ChannelMeans.of(tiny, 1) == ChannelMeans((1, 1), 1)


def test_the_last_axis_of_a_sequence() -> None:
    sample = np.arange(6, dtype=np.float32).reshape(1, 3, 2)
    np.testing.assert_array_equal(ChannelMeans.of(sample, 2).values, [2.0, 3.0])
