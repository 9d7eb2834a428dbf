"""TFLite's addition: both operands at a scale of twice the larger one and finer, added, rescaled to the output."""

import numpy as np

from qbench.errors import GraphError
from qbench.ir.op import Array, register
from qbench.ir.qparams import QParams
from qbench.ops.integer.requantize import IntegerSumOfTwo, saturate
from qbench.quant.fixed_point import quantized_multiplier
from qbench.quant.rescaling import rescale


@register
class TfliteAdd(IntegerSumOfTwo):
    """``rescale(rescale((lhs - z0) << left) +- rescale((rhs - z1) << left)) + zero_point``, saturated.

    Each of the three rescales rounds as ``tflite_double``; see tensorflow/lite/kernels/internal/reference/add.h.
    """

    name = "integer.tflite_add"
    zero_points: tuple[int, int]
    """Zero points of lhs and rhs."""
    zero_point: int = 0
    """Zero point of the result."""
    left: int
    """Bits that the operands are shifted left by before anything is rounded."""
    mantissa: tuple[int, int, int]
    """Of lhs, rhs and the result; that of rhs is negative where it is subtracted."""
    shift: tuple[int, int, int]

    def compute(self, lhs: Array, rhs: Array) -> Array:
        total: Array = np.zeros((), np.int64)
        for x, zero_point, mantissa, shift in zip(
            (lhs, rhs), self.zero_points, self.mantissa, self.shift, strict=False
        ):
            fine = (x.astype(np.int64) - zero_point) << self.left
            term = rescale(fine, np.asarray(abs(mantissa)), np.asarray(shift), "tflite_double")
            total = total + np.sign(mantissa) * term
        result = rescale(total, np.asarray(self.mantissa[2]), np.asarray(self.shift[2]), "tflite_double")
        return saturate(result + self.zero_point, self.dtype)


def tflite_add(lhs: QParams, rhs: QParams, out: QParams, sign: int) -> TfliteAdd:
    """The sum (sign 1) or difference (sign -1) of tensors with these qparams."""
    if any(q.axis is not None for q in (lhs, rhs, out)):
        raise GraphError("TFLite adds tensors of one scale each, not of one per channel")
    left = 15 if out.dtype == "int16" else 20
    twice = 2 * max(lhs.scales[0], rhs.scales[0])
    real = [lhs.scales[0] / twice, rhs.scales[0] / twice, twice / ((1 << left) * out.scales[0])]
    mantissas, shifts = quantized_multiplier(real)
    a, b, c = (int(m) for m in mantissas)
    d, e, f = (int(s) for s in shifts)
    return TfliteAdd(
        dtype=out.dtype,
        zero_points=(lhs.zero_points[0], rhs.zero_points[0]),
        zero_point=out.zero_points[0],
        left=left,
        mantissa=(a, sign * b, c),
        shift=(d, e, f),
    )
