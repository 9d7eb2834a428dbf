"""What kernels call of :mod:`qbench.quant.fixed_functions`, of one number: the same bits."""

from typing import Any

import numpy as np

from qbench.kernels.jit import register_jitable

_LARGEST = 2**31 - 1


@register_jitable
def one_over_one_plus(x: Any) -> Any:
    """``1 / (1 + x)`` of a Q0 number in [0, 1)."""
    half = (x + _LARGEST + 1) >> 1
    y = 1515870810 + high_multiply(half, -1010580540)
    for _ in range(3):
        error = (1 << 29) - high_multiply(half, y)
        y += shift_left(high_multiply(y, error), 2)
    return shift_left(y, 1)


@register_jitable
def reciprocal_square_root(x: Any) -> Any:
    """``1 / sqrt(x)`` of an integer: a mantissa and a left shift; of 0 as of 1."""
    if x <= 1:
        return np.int64(_LARGEST), np.int64(0)
    shift = np.int64(11)
    while x >= 2**29:
        x, shift = x >> 2, shift + 1
    while x < 2**27:
        x, shift = x << 2, shift - 1
    whole = x >> 1
    half = divide_by_power(whole, 1)
    y = np.int64(1 << 28)
    for _ in range(5):
        cube = shift_left(high_multiply(high_multiply(y, y), y), 6)
        y = shift_left(high_multiply(y, (1 << 28) + (1 << 27)) - high_multiply(half, cube), 3)
    y = high_multiply(y, 1518500250)
    return (y << -shift, np.int64(0)) if shift < 0 else (y, -shift)


@register_jitable
def shift_left(x: Any, by: Any) -> Any:
    """``x * 2^by``, saturated to 32 bits."""
    return min(max(x << by, -_LARGEST - 1), _LARGEST)


@register_jitable
def high_multiply(x: Any, y: Any) -> Any:
    """gemmlowp's SaturatingRoundingDoublingHighMul."""
    return (x * y + 2**30) >> 31


@register_jitable
def divide_by_power(x: Any, exponent: Any) -> Any:
    """gemmlowp's RoundingDivideByPOT."""
    half = (np.int64(1) << exponent) >> 1
    return (x + half - ((x < 0) & (half > 0))) >> exponent
