"""Functions of fixed-point numbers in 32 bits, as gemmlowp and TFLite compute them: exp, 1 / (1 + x), log, 1 / sqrt.

A number with m integer bits ("Qm") is held as its multiple of 2^(m - 31), in int64 arrays of values that fit 32 bits.
Each product, sum and shift rounds as the originals do (gemmlowp's fixedpoint.h, TFLite's kernels/internal/common.h), so
results are equal to the last bit. The constants are the originals' too.
"""

import numpy as np
from numpy.typing import NDArray

from qbench.quant.rescaling import divide_by_power, doubling_high_multiply

Integers = NDArray[np.int64]

_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1


def shift_left(x: Integers, by: Integers | int) -> Integers:
    """``x * 2^by``, saturated to 32 bits."""
    return np.clip(x << by, _INT32_MIN, _INT32_MAX)


def exp_of_negative(x: Integers) -> Integers:
    """The exponential of Q5 numbers at most 0, as Q0 numbers.

    A quarter's remainder goes through a polynomial, the rest is a product of the powers whose bits are set.
    """
    quarter = np.int64(1) << 24
    remainder = (x & (quarter - 1)) - quarter
    result = _exp_within_a_quarter(shift_left(remainder, 5))
    rest = remainder - x
    for bit, power in enumerate((1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)):
        result = np.where(rest & (quarter << bit), doubling_high_multiply(result, power), result)
    return np.where(x == 0, _INT32_MAX, result)


def _exp_within_a_quarter(a: Integers) -> Integers:
    """The exponential of Q0 numbers in [-1/4, 0): four terms of Taylor's series around -1/8."""
    at_eighth, third = 1895147668, 715827883
    x = a + (1 << 28)
    x2 = doubling_high_multiply(x, x)
    x3, x4 = doubling_high_multiply(x2, x), doubling_high_multiply(x2, x2)
    high = doubling_high_multiply(divide_by_power(x4, 2) + x3, third)
    return at_eighth + doubling_high_multiply(x + divide_by_power(high + x2, 1), at_eighth)


def one_over_one_plus(x: Integers) -> Integers:
    """``1 / (1 + x)`` of Q0 numbers in [0, 1), as Q0 numbers: three steps of Newton and Raphson."""
    half = (x + _INT32_MAX + 1) >> 1  # both are at least 0, where gemmlowp's rounding half sum is just this
    y = 1515870810 + doubling_high_multiply(half, -1010580540)  # Q2: 48/17 - 32/17 * half
    for _ in range(3):
        error = (1 << 29) - doubling_high_multiply(half, y)
        y = y + shift_left(doubling_high_multiply(y, error), 2)
    return shift_left(y, 1)


def reciprocal(x: Integers, integer_bits: int) -> tuple[Integers, Integers]:
    """``1 / x`` of positive numbers with that many integer bits: a Q0 number and the right shift that is left to do."""
    headroom = _leading_zeros(x)
    return one_over_one_plus((x << headroom) - 2**31), integer_bits - headroom


def log_of_q12(x: Integers) -> Integers:
    """The natural logarithm of Q12 numbers of at least 1, as Q5 numbers."""
    log_2, fourth_root, root = 1488522236, 1805811301, 1518500250
    alpha_n, alpha_d, alpha_i, alpha_f = 117049297, 127690142, 1057819769, 638450708
    quarter = 536870912 >> 6  # the sum is held in Q6
    headroom = _leading_zeros(x)
    shifted = shift_left(x, headroom - 1)
    low = shift_left(doubling_high_multiply(shifted, root), 1)
    power_low = _saturated(shift_left(12 - headroom, 25) + quarter)
    other = doubling_high_multiply(x, root)
    other_headroom = _leading_zeros(other) - 1
    high = shift_left(x, other_headroom)
    power_high = _saturated(shift_left(12 - other_headroom, 25) - quarter)
    r, power = np.minimum(low, high), np.maximum(power_low, power_high)
    p = _half_sum(r, fourth_root)
    q = 2 * (r - fourth_root)
    square = doubling_high_multiply(q, q)
    numerator = doubling_high_multiply(q, r) + doubling_high_multiply(doubling_high_multiply(q, square), alpha_n)
    inner = alpha_i + q + doubling_high_multiply(square, alpha_d)
    denominator = doubling_high_multiply(p, inner) + doubling_high_multiply(q, alpha_f)
    fraction = doubling_high_multiply(divide_by_power(numerator, 6), one_over_one_plus(denominator))
    return shift_left(doubling_high_multiply(power, log_2) + fraction, 1)


def reciprocal_square_root(x: Integers) -> tuple[Integers, Integers]:
    """``1 / sqrt(x)`` of integers: a mantissa and a left shift, about ``mantissa * 2^(shift - 31)``; of 0 as of 1."""
    tiny = x <= 1
    given = np.where(tiny, 2, x).astype(np.int64)
    shift = np.full(given.shape, 11, np.int64)
    while np.any(large := given >= 2**29):
        given, shift = np.where(large, given >> 2, given), shift + large
    pairs = (_leading_zeros(given) - 1) // 2 - 1
    shift, given = shift - pairs, given << (2 * pairs)
    whole = given >> 1  # Q3
    half = divide_by_power(whole, 1)
    y = np.full(given.shape, 1 << 28, np.int64)
    for _ in range(5):
        cube = shift_left(doubling_high_multiply(doubling_high_multiply(y, y), y), 6)
        step = doubling_high_multiply(y, (1 << 28) + (1 << 27)) - doubling_high_multiply(half, cube)
        y = shift_left(step, 3)
    y = doubling_high_multiply(y, 1518500250)
    y, shift = np.where(shift < 0, y << np.maximum(-shift, 0), y), np.maximum(shift, 0)
    return np.where(tiny, _INT32_MAX, y), np.where(tiny, 0, -shift)


def _leading_zeros(x: Integers) -> Integers:
    """Of positive 32-bit numbers."""
    return 32 - np.frexp(x.astype(np.float64))[1].astype(np.int64)


def _saturated(x: Integers) -> Integers:
    return np.clip(x, _INT32_MIN, _INT32_MAX)


def _half_sum(a: Integers, b: int) -> Integers:
    """gemmlowp's RoundingHalfSum: ties away from zero."""
    total = a + b
    halved = np.abs(total + np.where(total >= 0, 1, -1)) >> 1
    return np.where(total >= 0, halved, -halved)
