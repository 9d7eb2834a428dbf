"""Integer ops over windows: sums for averages, bilinear interpolation."""

import numpy as np
from numpy.typing import NDArray

from qbench.errors import GraphError
from qbench.ir.op import Array, Epilogue, QuantRule, register
from qbench.ir.types import Dim, TensorType
from qbench.ops.float.image import Resize2d
from qbench.ops.float.pool import Pool2d
from qbench.ops.float.reduce import Sum
from qbench.ops.numeric.exact import Accumulator, to_accumulator
from qbench.ops.numeric.interpolation import Coordinates
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


@register
class IntegerResizeOpen(InternalOp):
    """:class:`IntegerResizeLinear` of an image whose size is open: its tables are made when that is known."""

    name = "integer.resize_open"
    form_of = "image.resize2d"
    size: tuple[Dim, Dim]
    coordinate_transformation_mode: Coordinates = "half_pixel"
    scales: tuple[float, float] | None = None
    zero_point: int = 0
    ties_to_even: bool = False
    toward_zero: bool = False

    def infer(self, data: TensorType) -> TensorType:
        return self._resize.infer(data.with_dtype("float32")).with_dtype(data.dtype)

    def compute(self, data: Array) -> Array:
        return self.linear.compute(data, *self.tables((data.shape[2], data.shape[3])))

    @property
    def linear(self) -> IntegerResizeLinear:
        """The op that takes tables."""
        return self.as_op(IntegerResizeLinear)

    def tables(self, shape: tuple[int, int]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Of the rows and the columns of an image of that height and width."""
        return linear_table(self._resize, 0, shape[0]), linear_table(self._resize, 1, shape[1])

    @property
    def _resize(self) -> Resize2d:
        return self.as_op(Resize2d, method="linear")


def linear_table(resize: Resize2d, axis: int, size: int) -> NDArray[np.int32]:
    """int32[size of the result, 3] along one axis of so many elements: two neighbours, and the weight of the second."""
    indices, weights = resize.neighbours(axis, size)
    second = np.rint(weights[:, 1:] * (1 << INTERPOLATION_BITS))
    return np.concatenate([indices, second], axis=1).astype(np.int32)
