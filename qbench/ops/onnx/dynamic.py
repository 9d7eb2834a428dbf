"""Ops of ONNX and onnxruntime whose scales or zero points are computed at run time: products of integers, an LSTM."""

import numpy as np

from qbench.errors import DataError, GraphError
from qbench.ir.op import Array, Epilogue, Op, register
from qbench.ir.types import TensorType
from qbench.ops.float.recurrent import Lstm
from qbench.ops.integer.products import IntegerBatchMatmul, IntegerConv2d
from qbench.ops.numeric.convolution import convolve
from qbench.ops.numeric.exact import centred, exact_dtype, largest_sum, to_accumulator
from qbench.ops.products import Convolution, MatrixProduct
from qbench.ops.rules import InternalOp

_TO_REALS = (Epilogue.CAST, Epilogue.SCALE, Epilogue.BIAS, Epilogue.CLAMP)


def by_range(data: Array) -> tuple[Array, Array, Array]:
    """uint8 integers at the scale of the range of float32 data, that scale, the zero point; see `DynamicQuantize`."""
    if np.isnan(data).any():
        raise DataError("NaN cannot be quantized")
    zero = np.float32(0)
    low, high = np.min(data, initial=zero), np.max(data, initial=zero)
    scale = np.float32(1) if low == high else (high - low) / np.float32(255)
    zero_point = np.rint(np.clip(-low / scale, 0, 255)).astype(np.uint8)
    steps = np.rint(data / scale) + np.float32(zero_point)
    return np.clip(steps, 0, 255).astype(np.uint8), np.asarray(scale, np.float32), zero_point


@register
class DynamicQuantize(InternalOp):
    """uint8 integers at the scale of the data's own range, the scale, and the zero point (DynamicQuantizeLinear).

    The range is widened to hold 0; data that are all 0 get a scale of 1. Everything is computed in float32, as
    onnxruntime does.
    """

    name = "qnn.dynamic_quantize"
    samples = None

    def infer(self, data: TensorType) -> tuple[TensorType, ...]:
        if data.dtype != "float32":
            raise GraphError(f"{self.name} takes float32, not {data}")
        return data.with_dtype("uint8"), TensorType((), "float32"), TensorType((), "uint8")

    def compute(self, data: Array) -> tuple[Array, ...]:
        return by_range(data)


def _one_number(op: Op, *zero_points: TensorType) -> None:
    for zero_point in zero_points:
        if zero_point.shape not in ((), (1,)):
            raise GraphError(f"{op.name} takes one zero point for a tensor whose zero point is computed at run time")


@register
class MatmulInteger(MatrixProduct, InternalOp):
    """``(lhs - lhs_zero_point) @ (rhs - rhs_zero_point)`` in int32, batched as NumPy's matmul (MatMulInteger)."""

    name = "integer.matmul_dynamic"
    form_of = "nn.batch_matmul"
    operands = ("lhs", "rhs", "lhs_zero_point", "rhs_zero_point")
    absorbs = _TO_REALS

    def infer(self, lhs: TensorType, rhs: TensorType, *zero_points: TensorType) -> TensorType:
        _one_number(self, zero_points[0])
        columns = zero_points[1].shape
        if columns not in ((), (1,), rhs.shape[-1:]):
            raise GraphError(f"{self.name} takes one zero point for rhs, or one per column, not {columns}")
        return IntegerBatchMatmul().infer(lhs, rhs)

    def compute(self, lhs: Array, rhs: Array, lhs_zero_point: Array, rhs_zero_point: Array) -> Array:
        x, w = centred(lhs, int(lhs_zero_point.item())), rhs.astype(np.int64) - rhs_zero_point.astype(np.int64)
        exact = exact_dtype(x, x.shape[-1] * int(np.abs(w).max(initial=0)))
        return to_accumulator(np.matmul(x.astype(exact), w.astype(exact)), "int32")


@register
class ConvInteger(Convolution, InternalOp):
    """`integer.conv2d` whose zero points are operands (ConvInteger); padding counts as zero."""

    name = "integer.conv2d_dynamic"
    form_of = "nn.conv2d"
    operands = ("data", "weight", "data_zero_point", "weight_zero_point")
    absorbs = _TO_REALS

    def infer(self, data: TensorType, weight: TensorType, *zero_points: TensorType) -> TensorType:
        _one_number(self, zero_points[0])
        return self.as_op(IntegerConv2d).infer(data, weight)

    def compute(self, data: Array, weight: Array, data_zero_point: Array, weight_zero_point: Array) -> Array:
        x = centred(data, int(data_zero_point.item()))
        w = weight.astype(np.int64) - weight_zero_point.astype(np.int64).reshape(-1, 1, 1, 1)
        exact = exact_dtype(x, largest_sum(w, 0))
        sums = convolve(x.astype(exact), w.astype(exact), self.strides, self.padding, self.dilation, self.groups)
        return to_accumulator(sums, "int32")


@register
class DynamicLstm(Lstm):
    """An LSTM that rounds what it multiplies, as onnxruntime's DynamicQuantizeLSTM does.

    Its data to the 256 numbers of their range, its state before each time step to those of its own; all sequences
    together, as onnxruntime does in one thread: in several it gives each thread sequences that have a range of their
    own, where there are many of them or few units. Weights are real numbers here, `steps` times integers.
    """

    name = "nn.dynamic_lstm"
    samples = None
    reads_integers = False
    float_reason = "unsupported: it has integer weights already, and rounds its data by the range that they have"
    steps: tuple[float, ...]
    """Scales of the kernel, then of the recurrence: for each direction one, or one for each of its rows."""

    def compute(self, *arrays: Array) -> tuple[Array, ...]:
        data, *others = arrays
        return super().compute(_rounded(data), *others)

    def again(self, recurrence: Array, offset: Array, state: Array, gates: slice = slice(None)) -> Array:
        return super().again(recurrence, offset, _rounded(state), gates)


def _rounded(data: Array) -> Array:
    integers, scale, zero_point = by_range(data)
    return (integers.astype(np.float32) - zero_point.astype(np.float32)) * scale
