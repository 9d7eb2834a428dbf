"""Rescaling against exact arithmetic on Python's own integers, rule by rule as the sources of each mode state them."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qbench.errors import DataError, QParamsError
from qbench.quant.rescaling import rescale, rescale_float32, rounding_shift
from qbench.quant.rounding import FIXED_POINT, POWER_OF_TWO, ROUNDINGS, Rounding

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
LIMIT = 2**62 - 1

accumulators = st.one_of(
    st.integers(INT32_MIN, INT32_MAX), st.integers(-1000, 1000), st.sampled_from([INT32_MIN, INT32_MAX, 0, -1, 1])
)
wide = st.integers(-LIMIT, LIMIT)
mantissas = st.one_of(st.integers(2**30, INT32_MAX), st.sampled_from([2**30, INT32_MAX, 3 * 2**29]))
shifts = st.integers(-100, 30)


def half_up(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


def half_away(value: Fraction) -> int:
    return half_up(value) if value >= 0 else -half_up(-value)


def clip32(value: int) -> int:
    return min(max(value, INT32_MIN), INT32_MAX)


def clip62(value: int) -> int:
    return min(max(value, -LIMIT), LIMIT)


def exact(x: int, mantissa: int, shift: int) -> Fraction:
    return x * mantissa * Fraction(2) ** (shift - 31)


def double_rounding(x: int, mantissa: int, shift: int) -> int:
    """gemmlowp's functions, line by line."""
    shifted = clip32(x * 2 ** max(shift, 0))
    product = shifted * mantissa
    nudge = 2**30 if product >= 0 else 1 - 2**30
    high = int(Fraction(product + nudge, 2**31))  # C's division: towards zero
    exponent = max(-shift, 0)
    mask = 2**exponent - 1
    return (high >> exponent) + ((high & mask) > (mask >> 1) + (high < 0))


ORACLES: dict[Rounding, Callable[[int, int, int], int]] = {
    "tvm_upward": lambda x, m, s: clip62(half_up(exact(x, m, s))),
    "tvm_tonearest": lambda x, m, s: clip62(half_away(exact(x, m, s))),
    "tflite_single": lambda x, m, s: clip32(half_up(exact(x, m, s))),
    "tflite_double": double_rounding,
}


def one(x: int, mantissa: int, shift: int, rounding: Rounding) -> int:
    return int(rescale(np.array([x]), np.array([mantissa]), np.array([shift]), rounding)[0])


def test_every_mode_is_of_one_kind() -> None:
    assert {*FIXED_POINT, *POWER_OF_TWO, "fp32_rne", "fp64_away"} == set(ROUNDINGS)
    assert set(ORACLES) == FIXED_POINT


@pytest.mark.parametrize("rounding", sorted(FIXED_POINT))
@given(x=accumulators, mantissa=mantissas, shift=shifts)
@example(x=INT32_MIN, mantissa=INT32_MAX, shift=-31)
@example(x=INT32_MIN, mantissa=INT32_MAX, shift=-32)
@example(x=INT32_MAX, mantissa=INT32_MAX, shift=30)
@example(x=-3, mantissa=2**30, shift=0)
def test_fixed_point_is_exact(rounding: Rounding, x: int, mantissa: int, shift: int) -> None:
    assert one(x, mantissa, shift, rounding) == ORACLES[rounding](x, mantissa, shift)


@pytest.mark.parametrize("rounding", ["tvm_upward", "tvm_tonearest", "tflite_single"])
@given(x=wide, mantissa=mantissas, shift=shifts)
@example(x=2**62 - 1, mantissa=INT32_MAX, shift=-62)
@example(x=-(2**62) + 1, mantissa=INT32_MAX, shift=0)
def test_fixed_point_is_exact_for_wide_accumulators(rounding: Rounding, x: int, mantissa: int, shift: int) -> None:
    assert one(x, mantissa, shift, rounding) == ORACLES[rounding](x, mantissa, shift)


@pytest.mark.parametrize("rounding", ["tvm_upward", "tvm_tonearest"])
@given(x=wide | accumulators, mantissa=mantissas, shift=st.integers(30, 200))
def test_results_saturate_below_62_bits_and_never_wrap(rounding: Rounding, x: int, mantissa: int, shift: int) -> None:
    assert one(x, mantissa, shift, rounding) == ORACLES[rounding](x, mantissa, shift)


@given(x=accumulators, mantissa=mantissas, shift=shifts)
def test_tflite_single_is_tvm_upward_within_32_bits(x: int, mantissa: int, shift: int) -> None:
    upward = one(x, mantissa, shift, "tvm_upward")
    assert one(x, mantissa, shift, "tflite_single") == clip32(upward)


def test_where_tflite_single_and_tvm_upward_differ() -> None:
    # A result that 32 bits do not hold: TFLite saturates before the zero point is added, TVM's 64 bits do not.
    assert one(2**30, 2**30, 3, "tvm_upward") == 2**32
    assert one(2**30, 2**30, 3, "tflite_single") == INT32_MAX
    # A multiplier of 2^30 or more: TFLite's QuantizeMultiplier takes the largest that it has.
    assert one(1, 2**30, 31, "tvm_upward") == 2**30
    assert one(1, 2**30, 31, "tflite_single") == 2**30  # (2^31 - 1) * 2^-1, rounded up
    assert one(1, 3 * 2**29, 32, "tvm_upward") == 3 * 2**30
    assert one(1, 3 * 2**29, 32, "tflite_single") == 2**30


@pytest.mark.parametrize(("exponent", "share"), [(-2, 2**-2), (-8, 2**-8)])
def test_double_and_single_rounding_differ_as_often_as_the_shift_says(exponent: int, share: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(-(2**20), 2**20, 400_000)
    mantissa, shift = rng.integers(2**30, 2**31, x.size), np.full(x.size, exponent + 1)
    differs = rescale(x, mantissa, shift, "tflite_double") != rescale(x, mantissa, shift, "tflite_single")
    assert np.mean(differs) == pytest.approx(share, rel=0.2)


def test_double_rounding_refuses_accumulators_beyond_32_bits() -> None:
    with pytest.raises(DataError, match="2147483648 is too large for tflite_double"):
        rescale(np.array([[0, 2**31]]), np.array(2**30), np.array(0), "tflite_double")


def test_mantissas_and_shifts_broadcast() -> None:
    x = np.arange(12).reshape(2, 3, 2)
    mantissa, shift = np.array([2**30, 2**30, 2**30]).reshape(3, 1), np.array([1, 0, 2]).reshape(3, 1)
    result = rescale(x, mantissa, shift, "tflite_single")
    np.testing.assert_array_equal(result[:, 0], x[:, 0])
    np.testing.assert_array_equal(result[:, 1], (x[:, 1] + 1) // 2)
    np.testing.assert_array_equal(result[:, 2], 2 * x[:, 2])


@pytest.mark.parametrize("rounding", ["tvm_upward", "pow2_half_up"])
def test_empty_arrays_stay_empty(rounding: Rounding) -> None:
    empty, one_shift = np.zeros((0, 3), np.int32), np.array(1)
    if rounding == "tvm_upward":
        assert rescale(empty, np.array(2**30), one_shift, rounding).shape == (0, 3)
    else:
        assert rounding_shift(empty, one_shift, rounding).shape == (0, 3)


@given(x=wide | accumulators, shift=st.integers(-100, 100))
@example(x=2**62 - 1, shift=63)
@example(x=-(2**62) + 1, shift=63)
@example(x=-(2**62) + 1, shift=62)
def test_rounding_shifts_are_exact(x: int, shift: int) -> None:
    want = x / Fraction(2) ** shift
    up = rounding_shift(np.array([x]), np.array([shift]), "pow2_half_up")
    even = rounding_shift(np.array([x]), np.array([shift]), "pow2_half_even")
    assert (int(up[0]), int(even[0])) == (clip62(half_up(want)), clip62(round(want)))


@given(x=st.integers(INT32_MIN, INT32_MAX), multiplier=st.floats(2**-40, 2**20, width=32))
def test_float_rescaling_is_one_float32_product_rounded_to_even(x: int, multiplier: float) -> None:
    product = Fraction(float(np.float32(x))) * Fraction(multiplier)
    result = int(rescale_float32(np.array([x]), np.array([multiplier], np.float32))[0])
    assert result == round(Fraction(float(np.float32(float(product)))))


def test_float_rescaling_saturates() -> None:
    result = rescale_float32(np.array([1, -1, 0]), np.array([3e38], np.float32) * 1)
    assert result.tolist() == [2**62, -(2**62), 0]


@pytest.mark.parametrize(("function", "rounding"), [(rescale, "pow2_half_up"), (rounding_shift, "tflite_single")])
def test_a_mode_of_another_kind_is_an_error(function: Callable[..., object], rounding: Rounding) -> None:
    arrays = [np.array([1])] * (3 if function is rescale else 2)
    with pytest.raises(QParamsError, match=rounding):
        function(*arrays, rounding)
