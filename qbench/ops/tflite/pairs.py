"""TFLite's functions of two integers of 8 bits, as they are for every pair: squared differences and quotients."""

from collections.abc import Callable

import numpy as np

from qbench.ir.op import Array
from qbench.ir.qparams import QParams
from qbench.quant.fixed_functions import reciprocal
from qbench.quant.fixed_point import quantized_multiplier
from qbench.quant.rescaling import divide_by_power, doubling_high_multiply, rescale

_LEFT = 7
"""Bits that operands of a difference are shifted left by before anything is rounded."""


def _rescaled(x: Array, multiplier: float) -> Array:
    return rescale(x, *quantized_multiplier(multiplier), "tflite_double")


def _squared_difference(lhs: Array, rhs: Array, given: tuple[QParams, QParams], out: QParams) -> Array:
    """Operands at twice the larger scale; see tensorflow/lite/kernels/squared_difference.cc."""
    twice = 2 * max(q.scales[0] for q in given)
    a, b = (_rescaled(x << _LEFT, q.scales[0] / twice) for x, q in zip((lhs, rhs), given, strict=True))
    return _rescaled((a - b) ** 2, twice**2 / ((1 << 2 * _LEFT) * out.scales[0]))


def _quotient(lhs: Array, rhs: Array, given: tuple[QParams, QParams], out: QParams) -> Array:
    """Products with a fixed-point reciprocal; see tensorflow/lite/kernels/internal/reference/div.h.

    LiteRT ends with an error where it divides by zero; that is zero here. Where quotients are small it shifts by more
    than 32 bits: as x86 and AArch64 do this, a quotient of zero is one step, and others may be anything.
    """
    negative, divisor = rhs < 0, np.maximum(np.abs(rhs), 1)
    inverse, right = reciprocal(divisor, 31)
    dividend = np.where(negative, -lhs, lhs) + 0 * divisor
    magnitude = np.where(dividend < 0, ~dividend, dividend)
    headroom = 31 - np.frexp(magnitude.astype(np.float64))[1].astype(np.int64)
    fine = doubling_high_multiply(dividend << headroom, inverse)
    scale, divisor_scale, step = (np.float32(q.scales[0]) for q in (*given, out))
    mantissa, shift = quantized_multiplier(scale / (divisor_scale * step))  # rounded to float32 there too
    right = right + headroom - shift
    high = doubling_high_multiply(fine << np.maximum(-right, 0), int(mantissa))
    beyond = (high >> (right & 31)) + (high >= 0)  # gemmlowp's RoundingDivideByPOT then has a mask of ones
    steps = np.where(right < 32, divide_by_power(high, np.maximum(right, 0)), beyond)
    return np.where(rhs == 0, 0, steps)


def tflite_compared(x: Array, scale: float) -> Array:
    """What TFLite compares of 8-bit integers: see tensorflow/lite/kernels/internal/reference/comparisons.h.

    It has steps of 1/256 and is rounded, so that neighbours of a fine scale are equal.
    """
    return _rescaled(x << 8, scale)


TFLITE_PAIRS: dict[str, Callable[[Array, Array, tuple[QParams, QParams], QParams], Array]] = {
    "divide": _quotient,
    "squared_difference": _squared_difference,
}
"""Names as those of the float ops; operands and results are without their zero points."""
