"""Integer sums of products: explicit zero points in, wide accumulators out."""

from dataclasses import dataclass

import numpy as np

from qbench.ir.op import Array, Epilogue, register
from qbench.ir.types import TensorType
from qbench.ops.float.conv import Conv2d, Conv2dTranspose
from qbench.ops.float.dense import BatchMatmul, Dense, dense
from qbench.ops.float.elementwise import Multiply
from qbench.ops.numeric.convolution import convolve, convolve_transposed
from qbench.ops.numeric.exact import Accumulator, centred, exact_dtype, largest_sum, to_accumulator
from qbench.ops.products import Convolution, DenseProduct, MatrixProduct, TransposedConvolution
from qbench.ops.rules import InternalOp


def _real(integers: TensorType) -> TensorType:
    """The type that the float form of an op asks for."""
    return integers.with_dtype("float32")


@dataclass(frozen=True, kw_only=True)
class _Products(InternalOp):
    accumulator: Accumulator = "int32"


@register
class IntegerConv2d(Convolution, _Products):
    """Sum over the window of ``(data - data_zero_point) * (weight - weight_zero_point)``; padding counts as zero."""

    name = "integer.conv2d"
    form_of = "nn.conv2d"
    data_zero_point: int = 0
    weight_zero_point: int | tuple[int, ...] = 0

    def infer(self, data: TensorType, weight: TensorType) -> TensorType:
        return self.as_op(Conv2d).infer(_real(data), _real(weight)).with_dtype(self.accumulator)

    def compute(self, data: Array, weight: Array) -> Array:
        x, w = centred(data, self.data_zero_point), centred(weight, self.weight_zero_point)
        exact = exact_dtype(x, largest_sum(w, 0))
        sums = convolve(x.astype(exact), w.astype(exact), self.strides, self.padding, self.dilation, self.groups)
        return to_accumulator(sums, self.accumulator)


@register
class IntegerConv2dTranspose(TransposedConvolution, _Products):
    """The transpose of `IntegerConv2d`, with weight [channels, out / groups, kh, kw]."""

    name = "integer.conv2d_transpose"
    form_of = "nn.conv2d_transpose"
    data_zero_point: int = 0
    weight_zero_point: int | tuple[int, ...] = 0
    """One number, or one for each index of axis 1."""

    def infer(self, data: TensorType, weight: TensorType) -> TensorType:
        return self.as_op(Conv2dTranspose).infer(_real(data), _real(weight)).with_dtype(self.accumulator)

    def compute(self, data: Array, weight: Array) -> Array:
        x, w = centred(data, self.data_zero_point), centred(weight, self.weight_zero_point, 1)
        exact = exact_dtype(x, largest_sum(w, 1))
        sums = convolve_transposed(
            x.astype(exact),
            w.astype(exact),
            self.strides,
            self.padding,
            self.output_padding,
            self.dilation,
            self.groups,
        )
        return to_accumulator(sums, self.accumulator)


@register
class IntegerDense(DenseProduct, _Products):
    """``(data - data_zero_point) @ (weight - weight_zero_point).T`` with weight [units, in]."""

    name = "integer.dense"
    form_of = "nn.dense"
    data_zero_point: int = 0
    weight_zero_point: int | tuple[int, ...] = 0

    def infer(self, data: TensorType, weight: TensorType) -> TensorType:
        return Dense().infer(_real(data), _real(weight)).with_dtype(self.accumulator)

    def compute(self, data: Array, weight: Array) -> Array:
        x, w = centred(data, self.data_zero_point), centred(weight, self.weight_zero_point)
        exact = exact_dtype(x, largest_sum(w, 0))
        return to_accumulator(dense(x.astype(exact), w.astype(exact)), self.accumulator)


@register
class IntegerBatchMatmul(MatrixProduct, _Products):
    """Matrix products of two tensors less their zero points, batched as NumPy's matmul."""

    name = "integer.batch_matmul"
    form_of = "nn.batch_matmul"
    lhs_zero_point: int = 0
    rhs_zero_point: int = 0

    def infer(self, lhs: TensorType, rhs: TensorType) -> TensorType:
        return self.as_op(BatchMatmul).infer(_real(lhs), _real(rhs)).with_dtype(self.accumulator)

    def compute(self, lhs: Array, rhs: Array) -> Array:
        x, w = centred(lhs, self.lhs_zero_point), centred(rhs, self.rhs_zero_point)
        depth = x.shape[-2] if self.transpose_lhs else x.shape[-1]
        exact = exact_dtype(x, depth * int(np.abs(w).max(initial=0)))
        return to_accumulator(self.as_op(BatchMatmul).compute(x.astype(exact), w.astype(exact)), self.accumulator)


@register
class IntegerMultiply(_Products):
    """``(lhs - lhs_zero_point) * (rhs - rhs_zero_point)``, element by element."""

    name = "integer.multiply"
    form_of = "multiply"
    operands = ("lhs", "rhs")
    absorbs = (Epilogue.BIAS, Epilogue.REQUANTIZE, Epilogue.CLAMP)
    elementwise = True
    lhs_zero_point: int = 0
    rhs_zero_point: int | tuple[int, ...] = 0
    rhs_axis: int = 0
    """Axis of rhs that a tuple of zero points runs along."""

    def infer(self, lhs: TensorType, rhs: TensorType) -> TensorType:
        return Multiply().infer(_real(lhs), _real(rhs)).with_dtype(self.accumulator)

    def compute(self, lhs: Array, rhs: Array) -> Array:
        products = centred(lhs, self.lhs_zero_point) * centred(rhs, self.rhs_zero_point, self.rhs_axis)
        return to_accumulator(products, self.accumulator)
