"""onnxruntime's sum of 8-bit integers (MLAS, QLinearAdd): two fused multiply-adds in float32 and one rounding."""

from collections.abc import Sequence

import numpy as np

from qbench.ir.op import Array, register
from qbench.ir.qparams import QParams
from qbench.ir.types import Dim
from qbench.ops.integer.requantize import IntegerSumOfTwo, saturate
from qbench.quant.fused import fused_multiply_add


@register
class OnnxAdd(IntegerSumOfTwo):
    """``round(fma(lhs, multipliers[0], fma(rhs, multipliers[1], offset)))``, ties to even, saturated.

    The integers are taken as they are: their zero points are in the offset.
    """

    name = "integer.add_fused"
    multipliers: tuple[float, float]
    """float32 numbers: the scales of lhs and rhs over that of the result."""
    offset: float
    """A float32 number."""
    rhs_last: bool = False
    """Add ``rhs * multipliers[1]`` last and lhs first."""

    def compute(self, lhs: Array, rhs: Array) -> Array:
        x, y, (last, first) = lhs, rhs, self.multipliers
        if self.rhs_last:
            x, y, last, first = rhs, lhs, first, last
        total = fused_multiply_add(x, last, fused_multiply_add(y, first, self.offset))
        return saturate(np.rint(total).astype(np.int64), self.dtype)


def onnx_add(lhs: QParams, rhs: QParams, out: QParams, lhs_shape: Sequence[Dim], rhs_shape: Sequence[Dim]) -> OnnxAdd:
    """The sum of two tensors of the result's dtype, each quantized per tensor.

    onnxruntime adds the operand last that is a vector in its innermost loop: lhs, unless it has one element there and
    rhs has many. The zero points are rounded in that order too.
    """
    rank = max(len(lhs_shape), len(rhs_shape))
    pairs = zip(*((1,) * (rank - len(shape)) + tuple(shape) for shape in (lhs_shape, rhs_shape)), strict=True)
    rhs_last = next((left == 1 for left, right in reversed([*pairs]) if (left, right) != (1, 1)), False)
    scale = np.float32(out.scales[0])
    multipliers = [np.float32(q.scales[0]) / scale for q in (lhs, rhs)]
    zeros = [np.float32(q.zero_points[0]) for q in (lhs, rhs)]
    last, first = (1, 0) if rhs_last else (0, 1)
    shift = fused_multiply_add(multipliers[last], zeros[last], multipliers[first] * zeros[first])
    return OnnxAdd(
        dtype=out.dtype,
        multipliers=(float(multipliers[0]), float(multipliers[1])),
        offset=float(np.float32(out.zero_points[0]) - shift),
        rhs_last=rhs_last,
    )
