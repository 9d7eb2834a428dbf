"""Quantized softmax, its logarithm, and division by the Euclidean norm."""

from dataclasses import dataclass

import numpy as np

from qbench.ir.op import register
from qbench.ir.types import TensorType
from qbench.ops.onnx.softmax import OnnxSoftmax
from qbench.ops.qnn.base import Lowered, QnnOp, no_arithmetic
from qbench.ops.tflite.log_softmax import tflite_log_softmax
from qbench.ops.tflite.normalize import TfliteL2Normalize
from qbench.ops.tflite.softmax import TfliteSoftmax, TfliteSoftmaxInt16, softmax_table, softmax_table_int16
from qbench.quant.semantics import Semantics

_FLOAT = "qnn.dequantize, the float op and qnn.quantize"


@dataclass(frozen=True, kw_only=True)
class _AlongAxis(QnnOp):
    operands = ("data",)
    axis: int = -1
    semantics: Semantics = "tvm"


@register
class QnnSoftmax(_AlongAxis):
    """Softmax from integers to integers, as TFLite and onnxruntime have it."""

    name = "qnn.softmax"
    form_of = "nn.softmax"
    beta: float = 1.0
    """Factor of the input."""

    def lower(self, *types: TensorType) -> Lowered:
        if self.semantics == "onnx":
            return self._onnx()
        if self.semantics != "tflite":
            raise no_arithmetic(self, self.semantics, _FLOAT)
        source, dtype = self.q_in(0), self.q_out().dtype
        if source.dtype == "int16":
            op = TfliteSoftmaxInt16(dtype=dtype, axis=self.axis)
            return Lowered.of(op, exponentials=softmax_table_int16(source, self.beta))
        return Lowered.of(TfliteSoftmax(dtype=dtype, axis=self.axis), exponentials=softmax_table(source, self.beta))

    def _onnx(self) -> Lowered:
        source, target = self.q_in(0), self.q_out()
        if source.dtype != target.dtype or self.beta != 1:
            raise no_arithmetic(self, self.semantics, _FLOAT)
        steps = float(np.floor(np.float32(1) / np.float32(target.scales[0])))
        return Lowered.of(
            OnnxSoftmax(axis=self.axis, scale=source.scales[0], steps=steps, zero_point=target.zero_points[0])
        )


@register
class QnnLogSoftmax(_AlongAxis):
    """The logarithm of softmax from integers to integers; only TFLite has one."""

    name = "qnn.log_softmax"
    form_of = "nn.log_softmax"

    def lower(self, *types: TensorType) -> Lowered:
        if self.semantics != "tflite":
            raise no_arithmetic(self, self.semantics, _FLOAT)
        op, constants = tflite_log_softmax(self.q_in(0), self.q_out().dtype, self.axis)
        return Lowered.of(op, **constants)


@register
class QnnL2Normalize(QnnOp):
    """Each vector along an axis divided by its Euclidean norm; only TFLite has one."""

    name = "qnn.l2_normalize"
    operands = ("data",)
    axis: int = -1
    semantics: Semantics = "tvm"

    def lower(self, *types: TensorType) -> Lowered:
        if self.semantics != "tflite":
            raise no_arithmetic(self, self.semantics, "qnn.dequantize, float ops and qnn.quantize")
        op = TfliteL2Normalize(dtype=self.q_out().dtype, axis=self.axis, data_zero_point=self.one_zero_point(0))
        return Lowered(op, {})
