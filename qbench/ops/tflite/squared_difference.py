"""TFLite's squared difference: operands at twice the larger scale, their difference squared, rescaled to the output."""

import numpy as np

from qbench.ir.op import Array
from qbench.ir.qparams import QParams
from qbench.ops.integer.requantize import saturate
from qbench.quant.fixed_point import quantized_multiplier
from qbench.quant.rescaling import rescale

_LEFT = 7
"""Bits that the operands are shifted left by before anything is rounded."""


def tflite_squared_difference(lhs: Array, rhs: Array, given: tuple[QParams, QParams], out: QParams) -> Array:
    """Of integers of 8 bits; see tensorflow/lite/kernels/squared_difference.cc, whose rescales all round twice."""
    twice = 2 * max(q.scales[0] for q in given)
    real = [q.scales[0] / twice for q in given] + [twice**2 / ((1 << 2 * _LEFT) * out.scales[0])]
    mantissas, shifts = quantized_multiplier(real)

    def scaled(x: Array, index: int) -> Array:
        return rescale(x, np.asarray(mantissas[index]), np.asarray(shifts[index]), "tflite_double")

    a, b = (
        scaled((x.astype(np.int64) - q.zero_points[0]) << _LEFT, index)
        for index, (x, q) in enumerate(zip((lhs, rhs), given, strict=True))
    )
    return saturate(scaled((a - b) ** 2, 2) + out.zero_points[0], out.dtype)
