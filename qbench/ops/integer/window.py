"""Integer ops over windows: sums for averages, bilinear interpolation."""

import numpy as np

from qbench.errors import GraphError
from qbench.ir.op import Array, Epilogue, QuantRule, register
from qbench.ir.types import TensorType
from qbench.ops.float.pool import Pool2d
from qbench.ops.float.reduce import Sum
from qbench.ops.numeric.exact import Accumulator, to_accumulator
from qbench.ops.numeric.windows import pool_counts, pool_sum
from qbench.ops.rules import InternalOp
from qbench.quant.rescaling import rounding_shift
from qbench.quant.rounding import Rounding

INTERPOLATION_BITS = 20
"""Interpolation weights are multiples of 2^-20: two of them and an int16 stay within 64 bits with room."""


@register
class IntegerSum(InternalOp):
    """Sum of ``data - data_zero_point`` over axes: the numerator of a mean."""

    name = "integer.sum"
    form_of = "mean"
    absorbs = (Epilogue.REQUANTIZE, Epilogue.CLAMP)
    operands = ("data",)
    axes: tuple[int, ...]
    keepdims: bool = True
    data_zero_point: int = 0
    accumulator: Accumulator = "int32"

    def infer(self, data: TensorType) -> TensorType:
        return Sum(axes=self.axes, keepdims=self.keepdims).infer(data).with_dtype(self.accumulator)

    def compute(self, data: Array) -> Array:
        sums = (data.astype(np.int64) - self.data_zero_point).sum(axis=self.axes, keepdims=self.keepdims)
        return to_accumulator(sums, self.accumulator)


@register
class IntegerSumPool2d(Pool2d):
    """Sum of ``data - data_zero_point`` over each window: an average pool's numerator over one common denominator.

    Windows at the border may average fewer elements. Each sum is multiplied by ``denominator / elements``, so that
    dividing by `denominator` gives every average exactly.
    """

    name = "integer.sum_pool2d"
    form_of = "nn.avg_pool2d"
    absorbs = (Epilogue.REQUANTIZE, Epilogue.CLAMP)
    rule = QuantRule.INTERNAL
    count_include_pad: bool = False
    data_zero_point: int = 0
    denominator: int
    accumulator: Accumulator = "int32"

    def infer(self, data: TensorType) -> TensorType:
        return super().infer(data).with_dtype(self.accumulator)

    def compute(self, data: Array) -> Array:
        sums = pool_sum(data.astype(np.int64) - self.data_zero_point, self.window)
        counts = pool_counts((data.shape[2], data.shape[3]), self.window, self.count_include_pad)
        return to_accumulator(sums * (self.denominator // counts), self.accumulator)


@register
class IntegerResizeLinear(InternalOp):
    """Bilinear interpolation with weights in units of 2^-20, rounded once; qparams stay.

    `rows` [height, 3] and `columns` [width, 3] hold, per output index, the two source indices and the weight of the
    second.
    """

    name = "integer.resize_linear"
    form_of = "image.resize2d"
    operands = ("data", "rows", "columns")
    zero_point: int = 0
    ties_to_even: bool = False
    """Which of two equally near integers, counted from the zero point, is taken; else the upper one."""
    toward_zero: bool = False
    """Whether the stored integers are interpolated, and what is behind the point cut off, as onnxruntime does it."""

    def infer(self, data: TensorType, rows: TensorType, columns: TensorType) -> TensorType:
        if data.rank != 4 or rows.shape[1:] != (3,) or columns.shape[1:] != (3,):
            raise GraphError(f"needs data of rank 4 and tables [n, 3], not {data}, {rows}, {columns}")
        return TensorType((*data.shape[:2], rows.shape[0], columns.shape[0]), data.dtype)

    def compute(self, data: Array, rows: Array, columns: Array) -> Array:
        one = 1 << INTERPOLATION_BITS
        zero_point = 0 if self.toward_zero else self.zero_point
        wide = data.astype(np.int64) - zero_point
        down = rows[:, 2].astype(np.int64)[:, None]
        across = columns[:, 2].astype(np.int64)
        tall = wide[:, :, rows[:, 0]] * (one - down) + wide[:, :, rows[:, 1]] * down
        both = tall[..., columns[:, 0]] * (one - across) + tall[..., columns[:, 1]] * across
        if self.toward_zero:
            return (np.sign(both) * (np.abs(both) >> 2 * INTERPOLATION_BITS)).astype(data.dtype)
        ties: Rounding = "pow2_half_even" if self.ties_to_even else "pow2_half_up"
        between = rounding_shift(both, np.asarray(2 * INTERPOLATION_BITS), ties)
        return (between + zero_point).astype(data.dtype)  # it lies between its neighbours, so it fits
