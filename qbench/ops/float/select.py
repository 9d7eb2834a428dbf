"""Ops that cut tensors apart, join them, pad them, and pick elements."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from qbench.errors import DataError
from qbench.ir.dtypes import DType, numpy_dtype
from qbench.ir.op import Array, Op, QuantRule, register
from qbench.ir.types import Dim, TensorType, dim_factors, dim_product
from qbench.ops.float.dense import channelwise
from qbench.ops.rules import FloatOp, axis_within, broadcast, fixed, need_equal, need_same_dtype, replaced, require

__all__ = [
    "BroadcastLike",
    "BroadcastTo",
    "Cast",
    "Concatenate",
    "GatherNd",
    "Pad",
    "Split",
    "StridedSlice",
    "Take",
    "Tile",
]

_END = 2**31 - 1
"""An end at least this large means: to the end, also of an axis whose size is not known yet."""


@register
@dataclass(frozen=True, kw_only=True)
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
            same = replaced(other.shape, axis, 0) == replaced(data[0].shape, axis, 0)
            require(same, f"{self.name}: {other} and {data[0]} differ outside of axis {axis}")
        return TensorType(replaced(data[0].shape, axis, self._total([t.shape[axis] for t in data])), data[0].dtype)

    def _total(self, dims: list[Dim]) -> Dim:
        factors = [dim_factors(dim) for dim in dims]
        symbols = {symbol for number, symbol in factors if number}
        require(len(symbols) <= 1, f"{self.name}: cannot add sizes {', '.join(map(str, dims))} of axis {self.axis}")
        return dim_product((sum(number for number, _ in factors), *filter(None, symbols)))

    def compute(self, *data: Array) -> Array:
        return np.concatenate(data, axis=self.axis)


@register
@dataclass(frozen=True, kw_only=True)
class Split(Op):
    """A tensor cut along one axis, before each of these positions."""

    name = "split"
    moves = keeps_sign = True
    operands = ("data",)
    rule = QuantRule.SAME
    cuts: tuple[int, ...]
    axis: int

    @property
    def identity(self) -> bool:
        return True

    def infer(self, data: TensorType) -> tuple[TensorType, ...]:
        axis = axis_within(self, self.axis, data.rank)
        size = fixed(self, f"axis {axis} of data", data.shape[axis])
        edges = (0, *self.cuts, size)
        require(list(edges) == sorted(edges), f"{self.name}: cuts={self.cuts} must rise within 0..{size}")
        sizes = (end - start for start, end in pairwise(edges))
        return tuple(TensorType(replaced(data.shape, axis, part), data.dtype) for part in sizes)

    def compute(self, data: Array) -> tuple[Array, ...]:
        return tuple(np.split(data, self.cuts, axis=self.axis))


@register
@dataclass(frozen=True, kw_only=True)
class StridedSlice(Op):
    """``data[begin:end:stride]`` along some axes, with Python's meaning of negative and too large positions."""

    name = "strided_slice"
    moves = keeps_sign = True
    operands = ("data",)
    rule = QuantRule.SAME
    begin: tuple[int, ...]
    end: tuple[int, ...]
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
        for axis, cut in zip(self.axes, self._slices(), strict=True):
            axis_within(self, axis, data.rank)
            if (cut.start, cut.step) == (0, 1) and cut.stop >= _END:
                continue
            size = fixed(self, f"axis {axis} of data", shape[axis])
            shape = replaced(shape, axis, len(range(*cut.indices(size))))
        return TensorType(shape, data.dtype)

    def _slices(self) -> list[slice]:
        return [slice(*args) for args in zip(self.begin, self.end, self.strides, strict=True)]

    def compute(self, data: Array) -> Array:
        cuts = dict(zip(self.axes, self._slices(), strict=True))
        return data[tuple(cuts.get(axis, slice(None)) for axis in range(data.ndim))]


@register
@dataclass(frozen=True, kw_only=True)
class Pad(Op):
    """Elements added (before, after) each axis: a constant, a mirror image without the edge, or copies of the edge."""

    name = "nn.pad"
    moves = True
    operands = ("data",)
    rule = QuantRule.SAME
    pad_width: tuple[tuple[int, int], ...]
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
            size = fixed(self, f"axis {axis} of data", shape[axis])
            least = {"constant": 0, "reflect": max(before, after) + 1, "edge": 1}[self.mode]
            require(min(before, after) >= 0, f"{self.name}: pad_width={self.pad_width} is negative; slice instead")
            require(size >= least, f"{self.name}: mode={self.mode} needs {least} elements along axis {axis}: {data}")
            shape = replaced(shape, axis, before + size + after)
        return TensorType(shape, data.dtype)

    def compute(self, data: Array) -> Array:
        if self.mode == "constant":
            return np.pad(data, self.pad_width, constant_values=data.dtype.type(self.pad_value))
        return np.pad(data, self.pad_width, mode=self.mode)


@register
@dataclass(frozen=True, kw_only=True)
class Take(Op):
    """Elements at `indices` along one axis; negative ones count from the end."""

    name = "take"
    moves = keeps_sign = True
    operands = ("data", "indices")
    float_reason = "unsupported: gathers stay in float"
    axis: int = 0

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
@dataclass(frozen=True, kw_only=True)
class GatherNd(Op):
    """Parts of `data` at the positions in the rows of `indices`; the first `batch_dims` axes of both go together."""

    name = "gather_nd"
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
@dataclass(frozen=True, kw_only=True)
class BroadcastTo(Op):
    """A tensor repeated along its axes of size 1, and along new ones in front, to fill a shape."""

    name = "broadcast_to"
    moves = keeps_sign = True
    operands = ("data",)
    rule = QuantRule.SAME
    shape: tuple[int | str, ...]

    @property
    def identity(self) -> bool:
        return True

    def infer(self, data: TensorType) -> TensorType:
        fits = broadcast(self, data.shape, self.shape) == self.shape
        require(fits, f"{self.name}: {data} does not broadcast to shape={self.shape}")
        unknown = [dim for dim in self.shape if isinstance(dim, str) and dim not in data.shape]
        require(not unknown, f"{self.name}: shape={self.shape} has sizes that {data} does not tell")
        return TensorType(self.shape, data.dtype)

    def compute(self, data: Array) -> Array:
        sizes = (1,) * (len(self.shape) - data.ndim) + data.shape
        shape = tuple(size if isinstance(dim, str) else dim for dim, size in zip(self.shape, sizes, strict=True))
        return np.broadcast_to(data, shape)


@register
@dataclass(frozen=True, kw_only=True)
class BroadcastLike(FloatOp):
    """A tensor repeated along one axis of size 1, as often as another tensor is long: a class token for each sample."""

    name = "broadcast_like"
    moves = keeps_sign = True
    operands = ("data", "like")
    float_reason = "default for this op: it repeats a constant for each sample"
    axis: int = 0
    like_axis: int = 0

    def infer(self, data: TensorType, like: TensorType) -> TensorType:
        axis, other = axis_within(self, self.axis, data.rank), axis_within(self, self.like_axis, like.rank)
        require(data.shape[axis] == 1, f"{self.name}: axis {axis} of {data} must have size 1")
        return TensorType(replaced(data.shape, axis, like.shape[other]), data.dtype)

    def compute(self, data: Array, like: Array) -> Array:
        return np.repeat(data, like.shape[self.like_axis], axis=self.axis)


@register
@dataclass(frozen=True, kw_only=True)
class Tile(Op):
    """A tensor repeated this many times along each axis."""

    name = "tile"
    moves = keeps_sign = True
    operands = ("data",)
    rule = QuantRule.SAME
    reps: tuple[int, ...]

    @property
    def identity(self) -> bool:
        return True

    def infer(self, data: TensorType) -> TensorType:
        require(len(self.reps) == data.rank, f"{self.name}: reps={self.reps} must name every axis of {data}")
        require(min(self.reps, default=0) >= 0, f"{self.name}: reps={self.reps} must not be negative")
        return TensorType(
            tuple(dim_product((dim, reps)) for dim, reps in zip(data.shape, self.reps, strict=True)), data.dtype
        )

    def compute(self, data: Array) -> Array:
        return np.tile(data, self.reps)


@register
@dataclass(frozen=True, kw_only=True)
class Cast(Op):
    """The elements as another dtype: floats to integers are cut towards zero, to bool are compared with zero."""

    name = "cast"
    elementwise = True
    operands = ("data",)
    float_reason = "default for this op: a cast asks for this dtype"
    dtype: DType

    @property
    def identity(self) -> bool:
        return True

    def infer(self, data: TensorType) -> TensorType:
        return data.with_dtype(self.dtype)

    def compute(self, data: Array) -> Array:
        with np.errstate(all="ignore"):  # what lies outside an integer type has no defined result, as in C
            return data.astype(numpy_dtype(self.dtype))
