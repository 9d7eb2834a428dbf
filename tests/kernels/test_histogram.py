"""The counting kernels against NumPy; `tests/calibration` has the exact definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qbench.kernels.histogram import count_bins, extremes

NUMBERS = hnp.arrays(np.float32, st.integers(1, 40), elements=st.floats(width=32))


@given(NUMBERS)
def test_extremes(values: np.ndarray) -> None:
    low, high, zeros = extremes(values.view(np.int32))
    assert zeros == np.count_nonzero(values == 0)
    largest = np.float32(np.inf).view(np.int32)
    assert (~largest < low and high < largest) == np.isfinite(values).all()
    if np.isfinite(values).all():
        assert number(low) == values.min()
        assert number(high) == values.max()


def number(key: int) -> np.float32:
    bits = np.array(key if key >= 0 else key ^ 0x7FFFFFFF, np.int32)
    return bits.view(np.float32)[()]


@pytest.mark.parametrize("size", [1, 3, 4, 5, 2047, 2048, 2049, 5000])
@pytest.mark.parametrize("exact", [np.float32, np.float64])
def test_count_bins(size: int, exact: type[np.floating]) -> None:
    values = np.random.default_rng(size).uniform(-2, 2, size).astype(np.float32)
    values[::7] = 0
    counts = np.ones(64, np.int64)
    count_bins(values, exact(16), counts)
    expected = np.bincount(np.floor(values.astype(np.float64) * 16).astype(int) + 32, minlength=64)
    np.testing.assert_array_equal(counts, expected + 1)
