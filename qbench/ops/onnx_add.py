"""onnxruntime's sum of 8-bit integers (MLAS, QLinearAdd): two fused multiply-adds in float32 and one rounding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from qbench.ir.dtypes import DType
from qbench.ir.op import Array, Op, QuantRule, register
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ops.elementwise import Add
from qbench.ops.integer_rescale import saturate
from qbench.quant.fused import fused_multiply_add

__all__ = ["OnnxAdd", "onnx_add", "scalar_first"]


@register
@dataclass(frozen=True, kw_only=True)
class OnnxAdd(Op):
    """``round(fma(x, multiplier of x, fma(y, multiplier of y, offset)))``, ties to even, saturated; x and y are raw.

    x is lhs, unless lhs has one element where rhs has a whole row: then it is rhs. The offset depends on that order.
    """

    name = "integer.add_fused"
    operands = ("lhs", "rhs")
    rule: ClassVar[QuantRule] = QuantRule.INTERNAL
    dtype: DType
    multipliers: tuple[float, float]
    """float32 numbers: the scales of lhs and rhs over that of the result."""
    offsets: tuple[float, float]
    """float32 numbers: what is added where x is lhs, and where it is rhs."""

    def infer(self, lhs: TensorType, rhs: TensorType) -> TensorType:
        return Add().infer(lhs.with_dtype("float32"), rhs.with_dtype("float32")).with_dtype(self.dtype)

    def compute(self, lhs: Array, rhs: Array) -> Array:
        x, y, (first, second), offset = lhs, rhs, self.multipliers, self.offsets[0]
        if scalar_first(lhs.shape, rhs.shape):
            x, y, first, second, offset = rhs, lhs, second, first, self.offsets[1]
        total = fused_multiply_add(x, first, fused_multiply_add(y, second, offset))
        return saturate(np.rint(total).astype(np.int64), self.dtype)


def scalar_first(lhs: tuple[int, ...], rhs: tuple[int, ...]) -> bool:
    """Whether lhs is repeated along the innermost axis that has more than one element."""
    rank = max(len(lhs), len(rhs))
    pairs = zip((1,) * (rank - len(lhs)) + lhs, (1,) * (rank - len(rhs)) + rhs, strict=True)
    return next((left == 1 for left, right in reversed([*pairs]) if (left, right) != (1, 1)), False)


def onnx_add(lhs: QParams, rhs: QParams, out: QParams) -> OnnxAdd:
    """The sum of two tensors of the result's dtype, each quantized per tensor."""
    scale = np.float32(out.scales[0])
    multipliers = tuple(np.float32(q.scales[0]) / scale for q in (lhs, rhs))
    zeros = tuple(np.float32(q.zero_points[0]) for q in (lhs, rhs))
    offsets: list[float] = []
    for x, y in ((0, 1), (1, 0)):
        shift = fused_multiply_add(multipliers[x], zeros[x], multipliers[y] * zeros[y])
        offsets.append(float(np.float32(out.zero_points[0]) - shift))
    first, second = (float(multiplier) for multiplier in multipliers)
    return OnnxAdd(dtype=out.dtype, multipliers=(first, second), offsets=(offsets[0], offsets[1]))
