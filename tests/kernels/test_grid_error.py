"""Squared errors of rows on many grids, against the same sums one number after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qbench.kernels.grid_error import squared_errors

sizes = st.tuples(st.integers(0, 5), st.integers(1, 40), st.integers(1, 20))


@given(sizes, st.integers(0, 2**32 - 1))
def test_errors_are_the_sums_of_squares_in_order(size, seed):
    (rows, elements, grids), rng = size, np.random.default_rng(seed)
    x = (rng.standard_t(2, size=(elements, rows)) * 10.0 ** rng.integers(-30, 15)).astype(np.float32).T
    scales = np.abs(x).max(axis=1, keepdims=True).astype(np.float64) * rng.uniform(0.001, 1, size=(rows, grids))
    lows, highs = np.float64(rng.integers(-300, 1, scales.shape)), np.float64(rng.integers(0, 300, scales.shape))
    numbers = x.astype(np.float64)[:, :, None]
    k = np.clip(np.rint(numbers * (1 / scales)[:, None]), lows[:, None], highs[:, None])
    squares = (numbers - k * scales[:, None]) ** 2
    assert np.array_equal(squared_errors(x, scales, lows, highs), np.add.accumulate(squares, axis=1)[:, -1])


def test_a_number_in_the_middle_is_as_far_from_both_integers():
    x, scale = np.array([[0.5, -1.5, 100.0]], np.float32), np.ones((1, 1))
    assert squared_errors(x, scale, -2 * scale, 7 * scale).tolist() == [[0.25 + 0.25 + 93.0**2]]
