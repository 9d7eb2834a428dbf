"""TFLite's L2 normalization in integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qbench.errors import GraphError
from qbench.ir.dtypes import DType
from qbench.ir.op import Array, Op, QuantRule, register
from qbench.ir.types import TensorType

__all__ = ["TfliteL2Normalize"]


@register
@dataclass(frozen=True, kw_only=True)
class TfliteL2Normalize(Op):
    """Each vector along an axis divided by its Euclidean norm, in units of 1/128."""

    name = "integer.tflite_l2_normalize"
    operands = ("data",)
    rule: ClassVar[QuantRule] = QuantRule.INTERNAL
    dtype: DType
    axis: int = -1
    data_zero_point: int = 0

    def infer(self, data: TensorType) -> TensorType:
        return data.with_dtype(self.dtype)

    def compute(self, data: Array) -> Array:
        raise GraphError(f"{self.name} cannot be computed yet")
