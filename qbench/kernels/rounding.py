"""Requantize for one number, in every rounding mode: `quant.rescaling` as scalar code that kernels inline.

All functions take and give 64-bit integers, run as plain Python too, and have no intermediate result beyond 64 bits.
"""

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.kernels.fixed_functions import divide_by_power, high_multiply
from qbench.kernels.jit import register_jitable
from qbench.quant.rounding import ROUNDINGS, Rounding

NUMBERS = ("mantissa", "shift", "multiplier")
"""Fields of kernels that rescale: a number for each channel."""
PARAMETERS = dict.fromkeys((*NUMBERS, "zero_point", "low", "high"), "i8")
"""All that a requantize needs at the end of a kernel."""

_TFLITE_DOUBLE = ROUNDINGS.index("tflite_double")
_TFLITE_SINGLE = ROUNDINGS.index("tflite_single")
_TVM_TONEAREST = ROUNDINGS.index("tvm_tonearest")
_FP32_RNE = ROUNDINGS.index("fp32_rne")
_POW2_HALF_EVEN = ROUNDINGS.index("pow2_half_even")
_FP64_AWAY = ROUNDINGS.index("fp64_away")

_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_LIMIT = 2**62 - 1
"""Results saturate there, so that a zero point can be added without overflow."""


@register_jitable
def rescale_one(acc: Any, mantissa: Any, shift: Any, multiplier: Any, rounding: Any) -> Any:
    """``acc * mantissa * 2^(shift - 31)``, or ``acc * multiplier``, rounded as the mode says.

    Parameters
    ----------
    acc
        Integer below 2^62 in magnitude; below 2^31 for ``tflite_double``.
    mantissa, shift
        As `quant.fixed_point` makes them; for the modes that only shift right by ``n``, 2^30 and ``1 - n``.
    multiplier
        float32; only ``fp32_rne`` looks at it, and ``fp64_away``, where it is what the other two leave of the float64
        multiplier (see `two_parts`).
    rounding
        Index in `quant.rounding.ROUNDINGS`.

    Returns
    -------
    int64 below 2^62 in magnitude (2^62 itself for ``fp32_rne``): the bits of `quant.rescaling`.
    """
    x, m, s = np.int64(acc), np.int64(mantissa), np.int64(shift)
    if rounding == _FP32_RNE:
        return rescale_float32_one(x, multiplier)
    if rounding == _FP64_AWAY:
        return _float64_one(x, m, s, multiplier)
    if rounding == _TFLITE_DOUBLE:
        return _double_rounding(_clip32(x << min(max(s, 0), 31)), m, min(max(-s, 0), 32))
    if rounding == _TVM_TONEAREST:
        return _half_up(x, m, s) if x >= 0 else -_half_up(-x, m, s)
    if rounding == _POW2_HALF_EVEN:
        return _half_even(x, 1 - s)
    if rounding == _TFLITE_SINGLE:
        return _clip32(_half_up(x, m if s <= 30 else np.int64(_INT32_MAX), min(s, 30)))
    return _half_up(x, m, s)


@register_jitable
def rescale_plain(acc: Any, mantissa: Any, shift: Any, multiplier: Any, rounding: Any) -> Any:
    """`rescale_one` without branches, so that loops over it become vector code.

    Equal wherever the accumulator is a 32-bit integer and `is_plain` holds for the shift.
    """
    x, m = np.int64(acc), np.int64(mantissa)
    if rounding == _FP32_RNE:
        return rescale_float32_one(x, multiplier)
    if rounding == _FP64_AWAY:
        return _float64_one(x, m, np.int64(shift), multiplier)
    if rounding == _TFLITE_DOUBLE:
        return _double_rounding(x, m, min(-np.int64(shift), 32))
    right = min(31 - np.int64(shift), 63)
    product = x * m + (np.int64(1) << (right - 1))
    if rounding == _TVM_TONEAREST:
        return (product - (x < 0)) >> right
    if rounding == _POW2_HALF_EVEN:
        return (product - 1 + ((x * m >> right) & 1)) >> right
    if rounding == _TFLITE_SINGLE:
        return _clip32(product >> right)
    return product >> right


def is_plain(shift: NDArray[np.int32], rounding: Rounding) -> bool:
    """Whether `rescale_plain` may stand for `rescale_one`: no multiplier so large that it shifts left."""
    if rounding in ("fp32_rne", "fp64_away"):
        return True
    return bool(np.all(shift <= (0 if rounding == "tflite_double" else 30)))


@cache
def finisher(rounding: Rounding | None, plain: bool, offset: int | None = None) -> Any:
    """The end of an integer kernel, for one accumulator: rescale, add the zero point, clamp.

    Parameters
    ----------
    rounding
        None leaves accumulators as they are: the parameters then mean nothing.
    plain
        Use `rescale_plain`.
    offset
        For ``fp32_rne`` where the zero point is added before rounding: what the stored zero point and bounds are above
        the real ones.

    Returns
    -------
    ``finish(acc, mantissa, shift, multiplier, zero_point, low, high)``, int64.
    """
    if rounding is None:

        @register_jitable
        def keep(acc: Any, mantissa: Any, shift: Any, multiplier: Any, zero_point: Any, low: Any, high: Any) -> Any:
            return np.int64(acc)

        return keep
    rescale, mode = rescale_plain if plain else rescale_one, ROUNDINGS.index(rounding)
    if offset is not None:
        beyond = np.int64(offset)

        @register_jitable
        def first(acc: Any, mantissa: Any, shift: Any, multiplier: Any, zero_point: Any, low: Any, high: Any) -> Any:
            real = np.float32(np.float32(acc) * multiplier) + np.float32(zero_point - beyond)
            real = min(max(np.rint(real), np.float32(low - beyond)), np.float32(high - beyond))
            return np.int64(real) + beyond

        return first

    @register_jitable
    def finish(acc: Any, mantissa: Any, shift: Any, multiplier: Any, zero_point: Any, low: Any, high: Any) -> Any:
        return min(max(rescale(acc, mantissa, shift, multiplier, mode) + zero_point, low), high)

    return finish


@register_jitable
def round_shift(x: Any, right: Any, to_even: Any) -> Any:
    """``x / 2^right``, ties up or to even, exactly as `quant.rescaling.rounding_shift` has it."""
    if to_even:
        return _half_even(x, right)
    if right < 1:
        return _left_shift(x, -right, 0)
    return (x + _half(min(right, 63))) >> min(right, 63)


@register_jitable
def rescale_float32_one(x: Any, multiplier: Any) -> Any:
    """An integer as float32 times a float32 multiplier, ties to even."""
    product = np.rint(np.float32(x) * np.float32(multiplier))
    return np.int64(min(max(product, np.float32(-(2.0**62))), np.float32(2.0**62)))


def two_parts(multiplier: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.float32]]:
    """Mantissa, shift and the small rest, which together are exactly a float64 multiplier.

    The mantissa has the first 31 of the 53 bits, so a float32 holds the others.
    """
    significand, shift = np.frexp(multiplier)
    mantissa = np.floor(np.ldexp(significand, 31))
    rest = multiplier - np.ldexp(mantissa, shift - 31)
    return mantissa.astype(np.int32), shift.astype(np.int32), rest.astype(np.float32)


@register_jitable
def _float64_one(x: Any, mantissa: Any, shift: Any, rest: Any) -> Any:
    """An integer times a float64 multiplier, ties away from zero, saturated to 32 bits."""
    multiplier = math.ldexp(np.float64(mantissa), int(shift - 31)) + np.float64(rest)
    product = np.float64(x) * multiplier
    size = min(abs(product), np.float64(2.0**31))
    whole = np.floor(size)
    nearest = np.int64(whole) + (size - whole >= 0.5)
    return _clip32(nearest if product >= 0 else -nearest)


@register_jitable
def _clip32(x: Any) -> Any:
    return min(max(x, np.int64(_INT32_MIN)), np.int64(_INT32_MAX))


@register_jitable
def _half(right: Any) -> Any:
    """Half of 2^right, 0 for right = 0."""
    return np.int64(1) << (right - 1) if right > 0 else np.int64(0)


@register_jitable
def _left_shift(x: Any, by: Any, low: Any) -> Any:
    """``x * 2^by + low``, saturated; low lies in [0, 2^by]."""
    by = min(by, 62)
    if x > _LIMIT >> by:
        return np.int64(_LIMIT)
    if x < -(_LIMIT + 1) >> by:
        return np.int64(-_LIMIT)
    return min(max((x << by) + low, np.int64(-_LIMIT)), np.int64(_LIMIT))


@register_jitable
def _half_up(x: Any, mantissa: Any, shift: Any) -> Any:
    """``floor(x * mantissa / 2^t + 1/2)`` for t = 31 - shift, exactly."""
    t = 31 - shift
    if _INT32_MIN <= x <= _INT32_MAX:
        right = min(max(t, 0), 63)  # by 63 and more every product, being below 2^62, gives zero
        rounded = (x * mantissa + _half(right)) >> right
        return rounded if t >= 0 else _left_shift(rounded, -t, 0)
    low = (x & _INT32_MAX) * mantissa  # the product needs up to 93 bits: it is held as high * 2^31 + low
    high = (x >> 31) * mantissa + (low >> 31)
    low &= _INT32_MAX
    if t > 31:
        right = min(t - 31, 63)
        return (high + _half(right)) >> right
    right = max(t, 0)
    small = _left_shift(high, 31 - right, (low + _half(right)) >> right)
    return small if t >= 0 else _left_shift(small, -t, 0)


@register_jitable
def _half_even(x: Any, right: Any) -> Any:
    """``x / 2^right`` (times 2^-right where that is negative), ties to even."""
    if right < 1:
        return _left_shift(x, -right, 0)
    right = min(right, 63)  # by 63 and more every result is zero
    down = x >> (right - 1)
    odd_or_beyond = (x & ((np.int64(1) << (right - 1)) - 1)) != 0 or (down >> 1) & 1
    return (down >> 1) + (down & 1 if odd_or_beyond else 0)


@register_jitable
def _double_rounding(x: Any, mantissa: Any, exponent: Any) -> Any:
    """gemmlowp: SaturatingRoundingDoublingHighMul (ties up), then RoundingDivideByPOT (ties away from zero)."""
    return divide_by_power(high_multiply(x, mantissa), exponent)
