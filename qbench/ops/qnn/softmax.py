"""Quantized softmax, its logarithm, and division by the Euclidean norm."""

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from qbench.errors import GraphError
from qbench.ir.dtypes import integer_range
from qbench.ir.op import register
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ops.onnx.softmax import OnnxSoftmax
from qbench.ops.qnn.base import Lowered, QnnOp, no_arithmetic
from qbench.ops.tflite.log_softmax import tflite_log_softmax
from qbench.ops.tflite.normalize import TfliteL2Normalize
from qbench.ops.tflite.softmax import TfliteSoftmax, TfliteSoftmaxInt16, softmax_table, softmax_table_int16
from qbench.quant.semantics import Semantics

_NEAR = 1e-3
"""Of a scale, as LiteRT has it."""

_FLOAT = "qnn.dequantize, the float op and qnn.quantize"


@dataclass(frozen=True, kw_only=True)
class AlongAxis(QnnOp):
    """Base of what normalizes vectors along an axis; TFLite's kernels make integers of one scale."""

    axis: int = -1
    semantics: Semantics = "tvm"

    def made(self, source: QParams, asked: QParams) -> QParams:
        if self.semantics != "tflite":
            return asked
        q = self._of_tflite(source, asked)
        near = math.isclose(asked.scales[0], q.scales[0], rel_tol=_NEAR)
        same = (asked.dtype, asked.zero_points) == (q.dtype, q.zero_points)
        return asked if near and same else q

    @abstractmethod
    def _of_tflite(self, source: QParams, asked: QParams) -> QParams:
        """What the integers of TFLite's kernel mean."""

    def _check(self) -> None:
        q = self.made(self.q_in(0), self.q_out())
        if q != self.q_out():
            raise GraphError(f"{self.name} in tflite makes integers of {q}, not of {self.q_out()}")


@register
class QnnSoftmax(AlongAxis):
    """Softmax from integers to integers, as TFLite and onnxruntime have it."""

    name = "qnn.softmax"
    form_of = "nn.softmax"
    beta: float = 1.0
    """Factor of the input."""

    def _of_tflite(self, source: QParams, asked: QParams) -> QParams:
        if source.dtype == "int16":
            return QParams(2**-15, 0, "int16")
        low, high = integer_range(asked.dtype)
        return QParams(1 / (high - low + 1), low, asked.dtype)

    def lower(self, *types: TensorType) -> Lowered:
        if self.semantics == "onnx":
            return self._onnx()
        if self.semantics != "tflite":
            raise no_arithmetic(self, self.semantics, _FLOAT)
        self._check()
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
class QnnLogSoftmax(AlongAxis):
    """The logarithm of softmax from integers to integers; only TFLite has one."""

    name = "qnn.log_softmax"
    form_of = "nn.log_softmax"

    def _of_tflite(self, source: QParams, asked: QParams) -> QParams:
        return QParams(2**-4, integer_range(source.dtype)[1], source.dtype)

    def lower(self, *types: TensorType) -> Lowered:
        if self.semantics != "tflite":
            raise no_arithmetic(self, self.semantics, _FLOAT)
        self._check()
        op, constants = tflite_log_softmax(self.q_in(0), self.q_out().dtype, self.axis)
        return Lowered.of(op, **constants)


@register
class QnnL2Normalize(AlongAxis):
    """Each vector along an axis divided by its Euclidean norm; only TFLite has one."""

    name = "qnn.l2_normalize"
    form_of = "nn.l2_normalize"

    def _of_tflite(self, source: QParams, asked: QParams) -> QParams:
        low, high = integer_range(source.dtype)
        return QParams(2**-7, (low + high + 1) // 2, source.dtype)

    def lower(self, *types: TensorType) -> Lowered:
        if self.semantics != "tflite":
            raise no_arithmetic(self, self.semantics, _FLOAT)
        self._check()
        op = TfliteL2Normalize(dtype=self.q_out().dtype, axis=self.axis, data_zero_point=self.one_zero_point(0))
        return Lowered(op, {})
