"""Squared errors of rows on many grids, against the same sums one number after the other."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qbench.kernels.grid_error import integrated_errors, squared_errors

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


@given(sizes, st.integers(0, 2**32 - 1))
def test_integrals_are_the_sums_over_edges_in_order(size, seed):
    (_, edges, grids), rng = size, np.random.default_rng(seed)
    x, jumps = np.sort(rng.standard_t(2, size=(edges, 1)), axis=0), rng.normal(size=(edges, 1))
    scales = np.abs(x).max() * rng.uniform(0.001, 1, size=grids)
    lows, highs = np.float64(rng.integers(-300, 1, grids)), np.float64(rng.integers(0, 300, grids))
    k = np.clip(np.rint(x * (1 / scales)), lows, highs)
    rest = x - k * scales
    each = jumps * (k * (scales * scales * scales / 12) + rest * rest * rest / 3)
    found = integrated_errors(x[:, 0], jumps[:, 0], scales, lows, highs)
    assert np.array_equal(found, -np.add.accumulate(each, axis=0)[-1])


def test_the_integral_over_a_density_is_what_small_parts_of_it_cost():
    edges, heights, grids = np.array([-2.0, 0.25, 1.0, 7.0]), np.array([0.5, 2.0, 0.125]), np.array([0.3, 0.75, 2.0])
    x = (np.arange(-2.0, 7.0, 1 / 4096) + 1 / 8192)[:, None]
    lost = (x - np.clip(np.rint(x / grids), -3, 5) * grids) ** 2
    parts = heights[np.searchsorted(edges, x[:, 0]) - 1] @ lost / 4096
    found = integrated_errors(edges, np.diff(heights, prepend=0, append=0), grids, np.full(3, -3.0), np.full(3, 5.0))
    assert np.allclose(found, parts, rtol=1e-5)


def test_a_number_in_the_middle_is_as_far_from_both_integers():
    x, scale = np.array([[0.5, -1.5, 100.0]], np.float32), np.ones((1, 1))
    assert squared_errors(x, scale, -2 * scale, 7 * scale).tolist() == [[0.25 + 0.25 + 93.0**2]]
