"""Ops that cut tensors apart, join them, pad them, and pick elements."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

import numpy as np

from qbench.errors import DataError
from qbench.ir.dtypes import DType, numpy_dtype
from qbench.ir.op import Array, Epilogue, Op, QuantRule, register
from qbench.ir.sizes import Size, size_of
from qbench.ir.types import Dim, TensorType, dim_product, dim_sum, numbers
from qbench.ops.float.dense import channelwise
from qbench.ops.rules import Mover, axis_within, broadcast, fixed, need_equal, need_same_dtype, replaced, require

_END = 2**31 - 1
"""An end at least this large means: to the end, also of an axis whose size is not known yet."""


@register
class Concatenate(Op):
    """Tensors joined along one axis."""

    name = "concatenate"
    moves = keeps_sign = True
    operands = ("*data",)
    rule = QuantRule.CONCAT
    axis: int

    @property
    def identity(self) -> bool:
        return len(self.qin) == 1

    def infer(self, *data: TensorType) -> TensorType:
        require(bool(data), f"{self.name} needs at least one operand")
        need_same_dtype(self, *data)
        axis = axis_within(self, self.axis, data[0].rank)
        for other in data[1:]:
            given, wanted = replaced(other.shape, axis, 0), replaced(data[0].shape, axis, 0)
            need_equal(self, f"outside of axis {axis} the shape of {other}", given, wanted)
        return TensorType(replaced(data[0].shape, axis, dim_sum(t.shape[axis] for t in data)), data[0].dtype)

    def compute(self, *data: Array) -> Array:
        return np.concatenate(data, axis=self.axis)


@register
class Split(Mover):
    """A tensor cut along one axis, before each of these positions."""

    name = "split"
    cuts: tuple[Dim, ...]
    axis: int

    @property
    def identity(self) -> bool:
        return True

    def infer(self, data: TensorType) -> tuple[TensorType, ...]:
        axis = axis_within(self, self.axis, data.rank)
        size = data.shape[axis]
        known = [edge for edge in (0, *self.cuts, size) if isinstance(edge, int)]
        require(known == sorted(known), f"{self.name}: cuts={self.cuts} must rise within 0..{size}")
        edges = pairwise(map(size_of, (0, *self.cuts, size)))
        sizes = ((end - start).dim for start, end in edges)
        return tuple(TensorType(replaced(data.shape, axis, part), data.dtype) for part in sizes)

    def compute(self, data: Array) -> tuple[Array, ...]:
        return tuple(np.split(data, numbers(self.cuts), axis=self.axis))


@register
class StridedSlice(Mover):
    """``data[begin:end:stride]`` along some axes, with Python's meaning of negative and too large positions.

    Where size or positions are open, the positions are taken to lie within the axis.
    """

    name = "strided_slice"
    begin: tuple[Dim, ...]
    end: tuple[Dim, ...]
    strides: tuple[int, ...]
    axes: tuple[int, ...]

    @property
    def identity(self) -> bool:
        return all(stride > 0 for stride in self.strides)

    def infer(self, data: TensorType) -> TensorType:
        counts = {len(self.begin), len(self.end), len(self.strides), len(self.axes)}
        require(len(counts) == 1, f"{self.name}: begin, end, strides and axes must have the same length")
        require(len(set(self.axes)) == len(self.axes), f"{self.name}: axes={self.axes} has one twice")
        require(0 not in self.strides, f"{self.name}: strides={self.strides} must not be 0")
        shape = data.shape
        for axis, begin, end, stride in zip(self.axes, self.begin, self.end, self.strides, strict=True):
            axis_within(self, axis, data.rank)
            shape = replaced(shape, axis, self._length(shape[axis], begin, end, stride))
        return TensorType(shape, data.dtype)

    def _length(self, size: Dim, begin: Dim, end: Dim, stride: int) -> Dim:
        if isinstance(size, int) and isinstance(begin, int) and isinstance(end, int):
            return len(range(*slice(begin, end, stride).indices(size)))
        first, last = (_from_front(size, position, stride) for position in (begin, end))
        return ((last - first) / stride).ceil().dim

    def compute(self, data: Array) -> Array:
        bounds = zip(numbers(self.begin), numbers(self.end), self.strides, strict=True)
        cuts = dict(zip(self.axes, (slice(*args) for args in bounds), strict=True))
        return data[tuple(cuts.get(axis, slice(None)) for axis in range(data.ndim))]


def _from_front(size: Dim, position: Dim, stride: int) -> Size:
    """A position along an axis, counted from the front; what lies beyond it is brought to its ends."""
    if not isinstance(position, int):
        return size_of(position)
    if position >= _END:
        return size_of(size) - (stride < 0)
    if position <= -_END:
        return size_of(-1 if stride < 0 else 0)
    return size_of(position) + size_of(size) if position < 0 else size_of(position)


@register
class Pad(Op):
    """Elements added (before, after) each axis: a constant, a mirror image without the edge, or copies of the edge."""

    name = "nn.pad"
    moves = True
    rule = QuantRule.SAME
    pad_width: tuple[tuple[Dim, Dim], ...]
    mode: Literal["constant", "reflect", "edge"] = "constant"
    pad_value: float = 0.0

    @property
    def identity(self) -> bool:
        return not any(map(any, self.pad_width))

    def infer(self, data: TensorType) -> TensorType:
        count = len(self.pad_width)
        require(count == data.rank, f"{self.name}: pad_width has {count} pairs, data {data.rank} dimensions: {data}")
        shape = data.shape
        for axis, (before, after) in enumerate(self.pad_width):
            if (before, after) == (0, 0):
                continue
            known = [width for width in (before, after) if isinstance(width, int)]
            least = {"constant": 0, "reflect": max(known, default=0) + 1, "edge": 1}[self.mode]
            require(min(known, default=0) >= 0, f"{self.name}: pad_width={self.pad_width} is negative; slice instead")
            size = shape[axis]
            enough = not isinstance(size, int) or size >= least
            require(enough, f"{self.name}: mode={self.mode} needs {least} elements along axis {axis}: {data}")
            shape = replaced(shape, axis, dim_sum((before, size, after)))
        return TensorType(shape, data.dtype)

    def compute(self, data: Array) -> Array:
        widths = [numbers(pair) for pair in self.pad_width]
        if self.mode == "constant":
            return np.pad(data, widths, constant_values=data.dtype.type(self.pad_value))
        return np.pad(data, widths, mode=self.mode)


@register
class Take(Op):
    """Elements at `indices` along one axis; negative ones count from the end."""

    name = "take"
    moves = keeps_sign = True
    operands = ("data", "indices")
    float_reason = "unsupported: gathers stay in float"
    axis: int = 0

    @property
    def stored(self) -> Mapping[int, int]:
        return {0: self.axis}

    def infer(self, data: TensorType, indices: TensorType) -> TensorType:
        fits = indices.dtype in ("int32", "int64")
        require(fits, f"{self.name}: indices must be int32 or int64, not {indices.dtype}")
        axis = axis_within(self, self.axis, data.rank)
        return TensorType((*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :]), data.dtype)

    def compute(self, data: Array, indices: Array) -> Array:
        _check_indices(self, indices, self.axis, data.shape[self.axis])
        return np.take(data, indices, axis=self.axis)


def _check_indices(op: Op, indices: Array, axis: int, size: int) -> None:
    if indices.size and not -size <= indices.min() <= indices.max() < size:
        raise DataError(f"{op.name}: indices {indices.min()}..{indices.max()} go beyond axis {axis} of size {size}")


@register
class GatherNd(Op):
    """Parts of `data` at the positions in the rows of `indices`; the first `batch_dims` axes of both go together."""

    name = "gather_nd"
    samples = None
    moves = keeps_sign = True
    operands = ("data", "indices")
    float_reason = "unsupported: gathers stay in float"
    batch_dims: int = 0

    def infer(self, data: TensorType, indices: TensorType) -> TensorType:
        require(indices.dtype == "int64", f"{self.name}: indices must be int64, not {indices.dtype}")
        require(indices.rank >= 1, f"{self.name}: indices must have at least one dimension")
        depth, batch = fixed(self, "the last size of indices", indices.shape[-1]), self.batch_dims
        fits = 0 <= batch < indices.rank and depth >= 1 and batch + depth <= data.rank
        require(fits, f"{self.name}: indices {indices} with batch_dims={batch} do not point into {data}")
        need_equal(self, "the batch of indices", indices.shape[:batch], data.shape[:batch])
        return TensorType((*indices.shape[:-1], *data.shape[batch + depth :]), data.dtype)

    def compute(self, data: Array, indices: Array) -> Array:
        batch, rank = self.batch_dims, indices.ndim - 1
        along = [
            channelwise(np.arange(size, dtype=np.int64), axis, rank) for axis, size in enumerate(indices.shape[:batch])
        ]
        picked = [indices[..., axis] for axis in range(indices.shape[-1])]
        for axis, positions in enumerate(picked, batch):
            _check_indices(self, positions, axis, data.shape[axis])
        return data[(*along, *picked)]


@register
class BroadcastTo(Mover):
    """A tensor repeated along its axes of size 1, and along new ones in front, to fill a shape."""

    name = "broadcast_to"
    only_shaped = True
    shape: tuple[Dim, ...]

    @property
    def identity(self) -> bool:
        return True

    def infer(self, data: TensorType) -> TensorType:
        fits = broadcast(self, data.shape, self.shape) == self.shape
        require(fits, f"{self.name}: {data} does not broadcast to shape={self.shape}")
        return TensorType(self.shape, data.dtype)

    def compute(self, data: Array) -> Array:
        return np.broadcast_to(data, numbers(self.shape))


@register
class Tile(Mover):
    """A tensor repeated this many times along each axis."""

    name = "tile"
    only_shaped = True
    reps: tuple[Dim, ...]

    @property
    def identity(self) -> bool:
        return True

    def infer(self, data: TensorType) -> TensorType:
        require(len(self.reps) == data.rank, f"{self.name}: reps={self.reps} must name every axis of {data}")
        known = [count for count in self.reps if isinstance(count, int)]
        require(min(known, default=0) >= 0, f"{self.name}: reps={self.reps} must not be negative")
        return TensorType(
            tuple(dim_product((dim, reps)) for dim, reps in zip(data.shape, self.reps, strict=True)), data.dtype
        )

    def compute(self, data: Array) -> Array:
        return np.tile(data, numbers(self.reps))


@register
class Cast(Op):
    """The elements as another dtype: floats to integers are cut towards zero, to bool are compared with zero."""

    name = "cast"
    elementwise = True
    float_reason = "default for this op: a cast asks for this dtype"
    epilogue = Epilogue.CAST
    dtype: DType

    @property
    def identity(self) -> bool:
        return True

    def infer(self, data: TensorType) -> TensorType:
        return data.with_dtype(self.dtype)

    def compute(self, data: Array) -> Array:
        with np.errstate(all="ignore"):  # what lies outside an integer type has no defined result, as in C
            return data.astype(numpy_dtype(self.dtype))
