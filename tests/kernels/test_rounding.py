"""The scalar requantize against the NumPy one, bit for bit, in every mode and at every extreme."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from qbench.kernels.jit import tell
from qbench.kernels.rounding import is_plain, rescale_one, rescale_plain, two_parts
from qbench.quant.rescaling import rescale, rescale_float32, rescale_float64, rounding_shift
from qbench.quant.rounding import POWER_OF_TWO, ROUNDINGS, Rounding

tell()  # Numba compiles the functions below, which call qbench's

LIMIT = 2**62 - 1
narrow = st.integers(-(2**31), 2**31 - 1)
small = st.integers(-1000, 1000)
wide = st.integers(-LIMIT, LIMIT)
near_powers = st.builds(
    lambda sign, n, d: sign * 2**n + d, st.sampled_from([-1, 1]), st.integers(0, 61), st.integers(-1, 0)
)
mantissas = st.one_of(st.integers(2**30, 2**31 - 1), st.sampled_from([2**30, 2**31 - 1, 3 * 2**29]))


@njit
def every(acc, mantissa, shift, multiplier, rounding):
    out = np.empty(len(acc), np.int64)
    for i in range(len(acc)):
        out[i] = rescale_one(acc[i], mantissa[i], shift[i], multiplier[i], rounding)
    return out


@njit
def every_plain(acc, mantissa, shift, multiplier, rounding):
    out = np.empty(len(acc), np.int64)
    for i in range(len(acc)):
        out[i] = rescale_plain(acc[i], mantissa[i], shift[i], multiplier[i], rounding)
    return out


def oracle(acc, mantissa, shift, multiplier, rounding: Rounding):
    if rounding == "fp64_away":
        return rescale_float64(acc, np.ldexp(mantissa.astype(np.float64), shift - 31) + multiplier.astype(np.float64))
    if rounding == "fp32_rne":
        return rescale_float32(acc, multiplier)
    if rounding in POWER_OF_TWO:
        return rounding_shift(acc, 1 - shift, rounding)
    return rescale(acc, mantissa, shift, rounding)


def parameters(data, count: int, rounding: Rounding, shifts) -> tuple[np.ndarray, ...]:
    if rounding == "fp64_away":
        real = np.array(data.draw(st.lists(st.floats(2.0**-40, 2.0**30), min_size=count, max_size=count)))
        mantissa, shift, rest = two_parts(real)
        np.testing.assert_array_equal(np.ldexp(mantissa.astype(np.float64), shift - 31) + rest, real)
        return mantissa, shift, rest
    power = rounding in POWER_OF_TWO
    mantissa = [2**30 if power else data.draw(mantissas) for _ in range(count)]
    multiplier = data.draw(st.lists(st.floats(2**-40, 2**30, width=32), min_size=count, max_size=count))
    shift = data.draw(st.lists(shifts, min_size=count, max_size=count))
    return np.array(mantissa, np.int32), np.array(shift, np.int32), np.array(multiplier, np.float32)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@given(data=st.data())
def test_any_accumulator_and_multiplier(rounding: Rounding, data) -> None:
    kinds = (narrow, small) if rounding == "tflite_double" else (narrow, small, wide, near_powers)
    acc = np.array(data.draw(st.lists(st.one_of(*kinds), min_size=1, max_size=40)), np.int64)
    mantissa, shift, multiplier = parameters(data, len(acc), rounding, st.integers(-100, 40))
    got = every(acc, mantissa, shift, multiplier, ROUNDINGS.index(rounding))
    np.testing.assert_array_equal(got, oracle(acc, mantissa, shift, multiplier, rounding))


@pytest.mark.parametrize("rounding", ROUNDINGS)
@given(data=st.data())
def test_the_form_without_branches(rounding: Rounding, data) -> None:
    acc = np.array(data.draw(st.lists(st.one_of(narrow, small), min_size=1, max_size=40)), np.int32)
    most = 0 if rounding == "tflite_double" else 30
    mantissa, shift, multiplier = parameters(data, len(acc), rounding, st.integers(-100, most))
    assert is_plain(shift, rounding)
    got = every_plain(acc, mantissa, shift, multiplier, ROUNDINGS.index(rounding))
    np.testing.assert_array_equal(got, oracle(acc, mantissa, shift, multiplier, rounding))


def test_a_multiplier_that_shifts_left_is_not_plain() -> None:
    assert not is_plain(np.array([0, 31], np.int32), "tvm_upward")
    assert not is_plain(np.array([1], np.int32), "tflite_double")
    assert is_plain(np.array([31], np.int32), "fp32_rne")
