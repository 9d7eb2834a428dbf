"""Quantized arithmetic written down once more, in whole numbers and fractions of any size: slow and obvious."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

RANGES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1)}
MODES = ("tflite_double", "tflite_single", "tvm_upward", "tvm_tonearest", "fp32_rne")


def saturate(value: int, dtype: str) -> int:
    low, high = RANGES[dtype]
    return min(max(value, low), high)


def half_up(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


def half_away(value: Fraction) -> int:
    return half_up(value) if value >= 0 else -half_up(-value)


def multiplier(real: float) -> tuple[int, int]:
    """gemmlowp's: a mantissa of 31 bits and a shift, ``real ~ mantissa * 2**(shift - 31)``."""
    significand, shift = math.frexp(real)
    mantissa = half_away(Fraction(significand) * 2**31)
    return (mantissa // 2, shift + 1) if mantissa == 2**31 else (mantissa, shift)


def rescaled(acc: int, real: float, mode: str) -> int:
    """An accumulator times a real multiplier, rounded to an integer as the mode says."""
    if mode == "fp32_rne":
        return round(Fraction(float(np.float32(acc) * np.float32(real))))
    mantissa, shift = multiplier(real)
    value = Fraction(acc * mantissa) * Fraction(2) ** (shift - 31)
    if mode == "tvm_upward":
        return half_up(value)
    if mode == "tvm_tonearest":
        return half_away(value)
    if mode == "tflite_single":
        return saturate(half_up(value), "int32")
    widened = saturate(acc << max(shift, 0), "int32")
    high = half_up(Fraction(widened * mantissa, 2**31))
    return half_away(Fraction(high, 2 ** max(-shift, 0)))


def requantized(acc: int, real: float, zero_point: int, dtype: str, mode: str) -> int:
    return saturate(rescaled(acc, real, mode) + zero_point, dtype)


def each(function: object, *arrays: NDArray[np.generic]) -> Integers:
    """A function of whole numbers, element by element, with NumPy's broadcasting; once for equal ones."""
    sources = np.broadcast_arrays(*arrays)
    rows = list(zip(*(s.ravel().tolist() for s in sources), strict=True))
    found = {row: function(*row) for row in {*rows}}  # type: ignore[operator]
    return np.array([found[row] for row in rows], np.int64).reshape(sources[0].shape)


def padded(x: Integers, padding: Sequence[int]) -> Integers:
    top, left, bottom, right = padding
    return np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)))


def conv2d(
    x: Integers,
    w: Integers,
    strides: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0, 0, 0),
    dilation: Sequence[int] = (1, 1),
    groups: int = 1,
) -> Integers:
    """A sum for each output, over data and weights that are centred already."""
    x = padded(x, padding)
    samples, _, height, width = x.shape
    outputs, depth, rows, columns = w.shape
    out_height = (height - dilation[0] * (rows - 1) - 1) // strides[0] + 1
    out_width = (width - dilation[1] * (columns - 1) - 1) // strides[1] + 1
    y = np.zeros((samples, outputs, out_height, out_width), np.int64)
    per_group = outputs // groups
    for n, o, i, j in itertools.product(*map(range, y.shape)):
        y[n, o, i, j] = sum(
            int(x[n, o // per_group * depth + c, i * strides[0] + a * dilation[0], j * strides[1] + b * dilation[1]])
            * int(w[o, c, a, b])
            for c, a, b in itertools.product(range(depth), range(rows), range(columns))
        )
    return y


def conv2d_transpose(
    x: Integers,
    w: Integers,
    strides: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0, 0, 0),
    output_padding: Sequence[int] = (0, 0),
    groups: int = 1,
) -> Integers:
    """Each input spreads over a window of the output; what lies in the padding is cut off."""
    samples, channels, height, width = x.shape
    _, per_group, rows, columns = w.shape
    tall, wide = (height - 1) * strides[0] + rows, (width - 1) * strides[1] + columns
    y = np.zeros((samples, per_group * groups, tall + output_padding[0], wide + output_padding[1]), np.int64)
    inputs = channels // groups
    for n, c, i, j in itertools.product(*map(range, x.shape)):
        for o, a, b in itertools.product(range(per_group), range(rows), range(columns)):
            target = n, c // inputs * per_group + o, i * strides[0] + a, j * strides[1] + b
            y[target] += int(x[n, c, i, j]) * int(w[c, o, a, b])
    top, left, bottom, right = padding
    return y[:, :, top : y.shape[2] - bottom, left : y.shape[3] - right]


def all_codes(dtype: str) -> NDArray[np.generic]:
    low, high = RANGES[dtype]
    return np.arange(low, high + 1).astype(dtype)
