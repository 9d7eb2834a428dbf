"""TFLite's sigmoid and tanh of 16-bit integers: one table of sigmoid(i / 24), interpolated in 32 bits."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@cache
def _table() -> Integers:
    """sigmoid(i / 24) in units of 2^-16 for i below 256, half of the error of interpolation added."""
    sigmoid = 65536 / (1 + np.exp(-np.arange(513) / 48))
    exact, middle, following = sigmoid[:-1:2], sigmoid[1::2], sigmoid[2::2]
    entries = np.rint(exact + (middle - (exact + following) / 2) / 2).astype(np.int64)
    entries[-1] = 65535
    return entries


def _scaled(x: Integers, scale: float, two_powers: bool) -> Integers:
    """The argument in units of 1/12288 (1/24/512): a multiplication and a rounding right shift in 32 bits."""
    exponent = float(np.log(np.float32(scale)) * (np.float32(1) / np.log(np.float32(2))))
    left = 12 + round(exponent)
    if abs(exponent - round(exponent)) < 1e-3 and (left == 0 or (two_powers and left == 1)):
        return x * (3 << left)
    multiplier, right = float(np.float32(scale)) * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and right <= 30:
        multiplier, right = multiplier * 2, right + 1
    return (x * int(multiplier) + ((1 << right) >> 1)) >> right


def _interpolated(x: Integers, bits: int, most: int) -> Integers:
    """sigmoid of abs(x) in units of 2^-(16 + bits)."""
    table, size = _table(), np.abs(x)
    index = np.minimum(size >> bits, 254)
    between = (table[index] << bits) + (size & ((1 << bits) - 1)) * (table[index + 1] - table[index])
    return np.where(size >> bits >= 255, most, between)


def sigmoid_int16(x: Integers, scale: float) -> Integers:
    """sigmoid(x * scale) in units of 2^-15, x symmetric 16-bit integers."""
    wide = _scaled(x, scale, two_powers=False)
    result = _interpolated(wide, 9, 0x7FFF << 10)
    return np.where(wide >= 0, result + (1 << 9), (1 << 25) - result + (1 << 9) - 1) >> 10


def tanh_int16(x: Integers, scale: float) -> Integers:
    """tanh(x * scale) in units of 2^-15: 2 * sigmoid(2 x) - 1, x symmetric 16-bit integers."""
    wide = _scaled(x, scale, two_powers=True)
    result = _interpolated(wide, 8, 0xFFFF << 8)
    return np.where(wide >= 0, result - (1 << 23) + (1 << 7), -result + (1 << 23) + (1 << 7) - 1) >> 8
