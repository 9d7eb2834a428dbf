"""Quantized averages that a runtime computes in its own integer way: average pools and means."""

from __future__ import annotations

from dataclasses import dataclass

from qbench.ir.op import register
from qbench.ir.types import TensorType
from qbench.ops.qnn_base import Lowered, QnnOp, no_arithmetic
from qbench.ops.tflite_average import tflite_mean
from qbench.ops.tflite_pool import TfliteAvgPool2d
from qbench.quant.semantics import Semantics

__all__ = ["QnnAvgPool2d", "QnnMean"]


@register
@dataclass(frozen=True, kw_only=True)
class QnnAvgPool2d(QnnOp):
    """The mean of each window as integers, which keep the qparams of the input.

    ``tvm`` has none of its own: its form is qnn.sum_pool2d and a requantize.
    """

    name = "qnn.avg_pool2d"
    operands = ("data",)
    pool_size: tuple[int, int]
    strides: tuple[int, int]
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    dilation: tuple[int, int] = (1, 1)
    ceil_mode: bool = False
    count_include_pad: bool = False
    semantics: Semantics = "tvm"

    def lower(self, *types: TensorType) -> Lowered:
        if self.semantics != "tflite":
            raise no_arithmetic(self, self.semantics, "qnn.sum_pool2d and qnn.requantize")
        op = TfliteAvgPool2d(
            pool_size=self.pool_size,
            strides=self.strides,
            padding=self.padding,
            dilation=self.dilation,
            ceil_mode=self.ceil_mode,
        )
        return Lowered(op, {})


@register
@dataclass(frozen=True, kw_only=True)
class QnnMean(QnnOp):
    """The mean along some axes at the scale of the output.

    ``tvm`` has none of its own: its form is qnn.sum and a requantize.
    """

    name = "qnn.mean"
    operands = ("data",)
    axes: tuple[int, ...]
    keepdims: bool = True
    semantics: Semantics = "tvm"

    def lower(self, *types: TensorType) -> Lowered:
        if self.semantics != "tflite":
            raise no_arithmetic(self, self.semantics, "qnn.sum and qnn.requantize")
        return Lowered(tflite_mean(self.q_in(0), self.q_out(), types[0], self.axes, self.keepdims), {})
