"""Quantized averages that a runtime computes in its own integer way: average pools and means."""

import numpy as np

from qbench.ir.dtypes import numpy_dtype
from qbench.ir.op import Epilogue, register
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ops.float.pool import Windowed
from qbench.ops.onnx.pool import OnnxAvgPool2d
from qbench.ops.qnn.base import Lowered, QnnOp, no_arithmetic
from qbench.ops.tflite.average import TfliteAvgPool2d, tflite_mean, tflite_sum
from qbench.quant.arithmetic import dequantize
from qbench.quant.semantics import Semantics


@register
class QnnAvgPool2d(Windowed, QnnOp):
    """The mean of each window: TFLite's as integers, which keep the qparams of the input, onnxruntime's in float32.

    ``tvm`` has none of its own: its form is qnn.sum_pool2d and a requantize.
    """

    name = "qnn.avg_pool2d"
    form_of = "nn.avg_pool2d"
    absorbs = (Epilogue.CLAMP,)
    count_include_pad: bool = False
    semantics: Semantics = "tvm"

    def lower(self, *types: TensorType) -> Lowered:
        if self.semantics == "onnx":
            return self._onnx()
        if self.semantics != "tflite":
            raise no_arithmetic(self, self.semantics, "qnn.sum_pool2d and qnn.requantize")
        return Lowered(self.as_op(TfliteAvgPool2d), {})

    def _onnx(self) -> Lowered:
        source, target = self.q_in(0), self.q_out()
        codes = np.arange(source.qmin, source.qmax + 1).astype(numpy_dtype(source.dtype))
        reals = dequantize(codes, QParams(source.scale, self.one_zero_point(0), source.dtype))
        to = {"dtype": target.dtype, "step": target.scales[0], "zero_point": target.zero_points[0]}
        return Lowered.of(self.as_op(OnnxAvgPool2d, **to), reals=reals)


@register
class QnnMean(QnnOp):
    """The mean along some axes at the scale of the output.

    ``tvm`` has none of its own: its form is qnn.sum and a requantize.
    """

    name = "qnn.mean"
    form_of = "mean"
    absorbs = (Epilogue.CLAMP,)
    axes: tuple[int, ...]
    keepdims: bool = True
    semantics: Semantics = "tvm"

    def lower(self, *types: TensorType) -> Lowered:
        if self.semantics != "tflite":
            raise no_arithmetic(self, self.semantics, "qnn.sum and qnn.requantize")
        return Lowered(tflite_mean(self.q_in(0), self.q_out(), types[0], self.axes, self.keepdims), {})


@register
class QnnReduceSum(QnnOp):
    """The sum along some axes at the scale of the output; only TFLite has one."""

    name = "qnn.reduce_sum"
    form_of = "sum"
    absorbs = (Epilogue.CLAMP,)
    axes: tuple[int, ...]
    keepdims: bool = True
    semantics: Semantics = "tvm"

    def lower(self, *types: TensorType) -> Lowered:
        if self.semantics != "tflite":
            raise no_arithmetic(self, self.semantics, "qnn.sum and qnn.requantize")
        return Lowered(tflite_sum(self.q_in(0), self.q_out(), self.axes, self.keepdims), {})
