"""TFLite's softmax and log-softmax in integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from qbench.errors import GraphError
from qbench.ir.dtypes import DType
from qbench.ir.op import Array, Op, QuantRule, register
from qbench.ir.types import TensorType

__all__ = ["TfliteLogSoftmax", "TfliteSoftmax"]


@dataclass(frozen=True, kw_only=True)
class _AlongAxis(Op):
    operands = ("data",)
    rule: ClassVar[QuantRule] = QuantRule.INTERNAL
    dtype: DType
    axis: int = -1

    def infer(self, data: TensorType) -> TensorType:
        return data.with_dtype(self.dtype)

    def compute(self, data: Array) -> Array:
        raise GraphError(f"{self.name} cannot be computed yet")


@register
class TfliteSoftmax(_AlongAxis):
    """TFLite's softmax."""

    name = "integer.tflite_softmax"


@register
class TfliteLogSoftmax(_AlongAxis):
    """TFLite's log-softmax."""

    name = "integer.tflite_log_softmax"
