"""Tallies against NumPy, from kernels and from arrays; `tests/calibration` has the exact definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qbench.kernels.tally import LIMBS, TALLY, means_kernel, tally_kernel
from tests.kernels.harness import launch

NUMBERS = hnp.arrays(np.float32, st.integers(1, 40), elements=st.floats(width=32))


def empty(floor: float = -np.inf) -> np.ndarray:
    found = np.zeros(1, TALLY)
    found["low"], found["high"], found["exponent"] = 2**31, -(2**31), -160
    found["floor"] = ~np.float32(-floor).view(np.int32).astype(np.int64)
    return found


@given(st.lists(NUMBERS, max_size=3), st.sampled_from([-np.inf, -5000.0, -1.5]))
def test_finite_numbers_above_the_floor_of_arrays_without_nan_count(parts: list[np.ndarray], floor: float) -> None:
    found = empty(floor)
    for part in parts:
        launch(tally_kernel(), x=part, count=part.size, found=found)
    good = [part for part in parts if not np.isnan(part).any()]
    assert found["bad"] == len(parts) - len(good)
    good = [seen for part in good if (seen := part[np.isfinite(part) & (part > floor)]).size]
    assert found["count"] == found["counts"].sum() == sum(part.size for part in good)
    assert found["zeros"] == sum(np.count_nonzero(part == 0) for part in good)
    assert not good or number(found["low"]) == min(part.min() for part in good)
    assert not good or number(found["high"]) == max(part.max() for part in good)


def number(key: np.ndarray) -> float:
    bits = np.where(key >= 0, key, key ^ 0x7FFFFFFF).astype(np.int32)
    return float(bits.view(np.float32)[0])


@pytest.mark.parametrize("size", [1, 3, 4, 5, 2047, 2048, 2049, 5000])
@pytest.mark.parametrize("scale", [1.0, 1e5, 1e-30])
def test_bins(size: int, scale: float) -> None:
    values = (np.random.default_rng(size).uniform(-2, 2, size) * scale).astype(np.float32)
    values[::7] = 0
    found = empty()
    launch(tally_kernel(), x=values, count=size, found=found, threads=2)
    places = np.floor(values.astype(np.float64) * 2.0 ** -float(found["exponent"][0])).astype(int) + 2048
    np.testing.assert_array_equal(found["counts"][0], np.bincount(places, minlength=4096))


@pytest.mark.parametrize("shape", [(1, 5, 1), (2, 3, 20), (49, 6, 1), (3, 2, 7)])
def test_means(shape: tuple[int, int, int]) -> None:
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    totals = np.zeros((shape[1], LIMBS), np.int64)
    fields = dict(zip(("outer", "channels", "inner"), shape, strict=True))
    launch(means_kernel(), x=values, totals=totals, **fields)
    means = [sum(int(limb) * 2.0 ** (32 * i - 149) for i, limb in enumerate(limbs)) for limbs in totals]
    np.testing.assert_array_equal(means, values.mean(axis=(0, 2), dtype=np.float64).astype(np.float32))
