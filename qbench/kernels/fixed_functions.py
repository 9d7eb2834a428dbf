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
def log_of_q12(x: Any) -> Any:
    """The natural logarithm of a Q12 number of at least 1, as a Q5 number."""
    log_2, fourth_root, root = 1488522236, 1805811301, 1518500250
    alpha_n, alpha_d, alpha_i, alpha_f = 117049297, 127690142, 1057819769, 638450708
    quarter = 536870912 >> 6
    headroom = leading_zeros(x)
    low = shift_left(high_multiply(shift_left(x, headroom - 1), root), 1)
    power_low = shift_left(12 - headroom, 25) + quarter
    other = high_multiply(x, root)
    other_headroom = leading_zeros(other) - 1
    high = shift_left(x, other_headroom)
    power_high = shift_left(12 - other_headroom, 25) - quarter
    r, power = min(low, high), max(power_low, power_high)
    total = r + fourth_root
    p = (total + 1) >> 1
    q = 2 * (r - fourth_root)
    square = high_multiply(q, q)
    numerator = high_multiply(q, r) + high_multiply(high_multiply(q, square), alpha_n)
    denominator = high_multiply(p, alpha_i + q + high_multiply(square, alpha_d)) + high_multiply(q, alpha_f)
    fraction = high_multiply(divide_by_power(numerator, 6), one_over_one_plus(denominator))
    return shift_left(high_multiply(power, log_2) + fraction, 1)


@register_jitable
def leading_zeros(x: Any) -> Any:
    """Of a positive 32-bit number."""
    count = np.int64(0)
    while x << count < 2**31:
        count += 1
    return count


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
