"""Integers times a multiplier, rounded: one function per kind of multiplier, exact in 64 bits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.errors import DataError, QParamsError
from qbench.quant.rounding import FIXED_POINT, POWER_OF_TWO, Rounding

Integers = NDArray[np.int64]

_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_LIMIT = 2**62 - 1
"""Accumulators lie below 2^62 in magnitude, and results saturate there: a zero point can be added without overflow."""


def rescale(acc: NDArray[Any], mantissa: NDArray[Any], shift: NDArray[Any], rounding: Rounding) -> Integers:
    """``acc * mantissa * 2^(shift - 31)``, rounded as the mode says.

    Parameters
    ----------
    acc
        Integers below 2^62 in magnitude; ``tflite_double`` takes 32-bit integers only.
    mantissa, shift
        From `quantized_multiplier`, shaped to broadcast against `acc`.
    rounding
        One of the fixed-point modes. They differ in ties, and at extremes: the TFLite modes saturate the result to 32
        bits and ``tflite_single`` takes a multiplier of 2^30 or more as the largest below it, while TVM's keep 64 bits.

    Raises
    ------
    DataError
        An accumulator too large for the mode.
    QParamsError
        `rounding` is not a fixed-point mode.
    """
    x, m, s = (np.asarray(a).astype(np.int64) for a in (acc, mantissa, shift))
    _check_range(x, _INT32_MAX if rounding == "tflite_double" else _LIMIT, rounding)
    if rounding == "tflite_double":
        return divide_by_power(doubling_high_multiply(_saturating_left_shift(x, s), m), np.maximum(-s, 0))
    if rounding == "tvm_upward":
        return _half_up(x, m, s)
    if rounding == "tvm_tonearest":
        return np.sign(x) * _half_up(np.abs(x), m, s)
    if rounding == "tflite_single":
        return np.clip(_half_up(x, np.where(s > 30, _INT32_MAX, m), np.minimum(s, 30)), _INT32_MIN, _INT32_MAX)
    raise QParamsError(f"{rounding} is not a fixed-point mode ({', '.join(sorted(FIXED_POINT))})")


def rescale_float32(acc: NDArray[Any], multiplier: NDArray[np.float32]) -> Integers:
    """``acc`` as float32 times a float32 multiplier, ties to even (mode ``fp32_rne``).

    Parameters
    ----------
    acc
        Integers; beyond 2^24 the conversion to float32 rounds, as it does in the runtimes that have this mode.
    multiplier
        Positive, shaped to broadcast against `acc`.
    """
    with np.errstate(over="ignore"):  # an infinity saturates
        product = np.rint(np.asarray(acc).astype(np.float32) * np.asarray(multiplier, np.float32))
    return np.clip(product, -(2.0**62), 2.0**62).astype(np.int64)


def rescale_float64(acc: NDArray[Any], multiplier: NDArray[np.float64]) -> Integers:
    """``acc`` times a float64 multiplier, ties away from zero, saturated to 32 bits (mode ``fp64_away``).

    Parameters
    ----------
    acc
        Integers; beyond 2^53 the conversion to float64 rounds.
    multiplier
        Positive, shaped to broadcast against `acc`.
    """
    with np.errstate(over="ignore"):  # an infinity saturates
        product = np.abs(np.asarray(acc).astype(np.float64) * np.asarray(multiplier, np.float64))
    whole = np.floor(product)
    nearest = np.minimum(whole + (product - whole >= 0.5), 2.0**31).astype(np.int64)
    return np.clip(np.sign(acc) * nearest, _INT32_MIN, _INT32_MAX)


def rounding_shift(acc: NDArray[Any], shift: NDArray[Any], rounding: Rounding) -> Integers:
    """``acc / 2^shift``, ties up or to even (modes ``pow2_half_up`` and ``pow2_half_even``).

    Parameters
    ----------
    acc
        Integers below 2^62 in magnitude.
    shift
        Right shifts, shaped to broadcast against `acc`; negative ones shift left and saturate below 2^62.
    rounding
        One of the power-of-two modes.
    """
    if rounding not in POWER_OF_TWO:
        raise QParamsError(f"{rounding} is not a power-of-two mode ({', '.join(sorted(POWER_OF_TWO))})")
    x, s = np.asarray(acc).astype(np.int64), np.asarray(shift).astype(np.int64)
    _check_range(x, _LIMIT, rounding)
    right = np.clip(s, 0, 63)  # by 63 and more every result is zero
    down = np.maximum(right - 1, 0)
    last_bit_dropped = np.where(right > 0, (x >> down) & 1, 0)
    rounded = (x >> right) + last_bit_dropped
    if rounding == "pow2_half_even":
        tie = (last_bit_dropped == 1) & ((x & ((np.int64(1) << down) - 1)) == 0)
        rounded -= np.where(tie, rounded & 1, 0)
    return rounded if np.all(s >= 0) else np.where(s < 0, _left_shift(x, np.maximum(-s, 0)), rounded)


def _check_range(x: Integers, limit: int, rounding: Rounding) -> None:
    low, high = (int(x.min()), int(x.max())) if x.size else (0, 0)
    if low < -limit - 1 or high > limit:
        raise DataError(f"accumulator {max(low, high, key=abs)} is too large for {rounding} (at most {limit})")


def _left_shift(x: Integers, by: Integers, low: Integers | int = 0) -> Integers:
    """``x * 2^by + low``, saturated; low lies in [0, 2^by]."""
    by = np.minimum(by, 62)
    fits = (-(2**62) >> by <= x) & (x <= _LIMIT >> by)
    return np.clip(np.where(fits, (x << by) + low, np.sign(x) * _LIMIT), -_LIMIT, _LIMIT)


def _half(right: Integers) -> Integers:
    return np.where(right > 0, np.int64(1) << np.maximum(right - 1, 0), 0)


def _half_up(x: Integers, mantissa: Integers, shift: Integers) -> Integers:
    """``floor(x * mantissa / 2^t + 1/2)`` for t = 31 - shift, exactly."""
    t = 31 - shift
    if x.size and max(-int(x.min()), int(x.max())) >= 2**31:
        return _half_up_wide(x, mantissa, t)
    right = np.clip(t, 0, 63)  # by 63 and more every product, being below 2^62, gives zero
    rounded = (x * mantissa + _half(right)) >> right
    return rounded if np.all(t >= 0) else _left_shift(rounded, np.maximum(-t, 0))


def _half_up_wide(x: Integers, mantissa: Integers, t: Integers) -> Integers:
    """The same where the product needs up to 93 bits: it is held as ``high * 2^31 + low``."""
    low = (x & _INT32_MAX) * mantissa
    high = (x >> 31) * mantissa + (low >> 31)
    low &= _INT32_MAX
    right = np.clip(t, 0, 31)
    small = _left_shift(high, 31 - right, (low + _half(right)) >> right)
    right = np.clip(t - 31, 1, 63)
    return np.where(t > 31, (high + _half(right)) >> right, _left_shift(small, np.maximum(-t, 0)))


def _saturating_left_shift(x: Integers, shift: Integers) -> Integers:
    return np.clip(x << np.clip(shift, 0, 31), _INT32_MIN, _INT32_MAX)


def doubling_high_multiply(x: Integers, mantissa: Integers | int) -> Integers:
    """gemmlowp's SaturatingRoundingDoublingHighMul of 32-bit integers, ties up; -2^31 twice must not occur."""
    return (x * mantissa + 2**30) >> 31


def divide_by_power(x: Integers, exponent: Integers | int) -> Integers:
    """gemmlowp's RoundingDivideByPOT of 32-bit integers: ``x / 2^exponent``, ties away from zero."""
    exponent = np.minimum(exponent, 32)  # by 32 and more every 31-bit value gives zero
    mask = (np.int64(1) << exponent) - 1
    return (x >> exponent) + ((x & mask) > (mask >> 1) + (x < 0))
