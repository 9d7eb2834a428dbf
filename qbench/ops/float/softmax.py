"""Softmax and its logarithm."""

from dataclasses import dataclass

import numpy as np

from qbench.ir.op import Array, register
from qbench.ir.types import TensorType
from qbench.ops.rules import FloatOp, axis_within, need_float


@dataclass(frozen=True, kw_only=True)
class AlongAxis(FloatOp):
    """What works on vectors along an axis."""

    axis: int = -1

    def infer(self, data: TensorType) -> TensorType:
        need_float(self, data)
        axis_within(self, self.axis, data.rank)
        return data


@register
class Softmax(AlongAxis):
    """``exp(data) / sum(exp(data))`` along one axis, shifted by the maximum so that nothing overflows."""

    name = "nn.softmax"
    ends = (0.0, 1.0)
    float_reason = "default for this op: softmax stays in float"
    safe: bool = False
    """Where all elements are minus infinity, as those of a row that is masked altogether: zeros in place of NaN, as
    PyTorch's attention has it."""

    def compute(self, data: Array) -> Array:
        powers = np.exp(data - data.max(axis=self.axis, keepdims=True))
        result = powers / powers.sum(axis=self.axis, keepdims=True)
        return np.where(np.isnan(result), np.zeros((), result.dtype), result) if self.safe else result


@register
class LogSoftmax(AlongAxis):
    """The logarithm of softmax along one axis."""

    name = "nn.log_softmax"
    float_reason = "default for this op: log_softmax stays in float"

    def compute(self, data: Array) -> Array:
        shifted = data - data.max(axis=self.axis, keepdims=True)
        return shifted - np.log(np.exp(shifted).sum(axis=self.axis, keepdims=True))
