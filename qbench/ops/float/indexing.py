"""Ops that pick, sort, count and write elements by index; they stay in float, at the tails of networks."""

from typing import Literal

import numpy as np

from qbench.errors import DataError
from qbench.ir.dtypes import dtype_of, is_float
from qbench.ir.op import Array, Op, register
from qbench.ir.types import Dim, TensorType, numbers
from qbench.ops.rules import (
    FloatOp,
    axis_within,
    broadcast,
    need_equal,
    need_number,
    need_same_dtype,
    replaced,
    require,
)

Reduction = Literal["none", "add", "mul", "min", "max"]
_REDUCE = {"add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}


def need_indices(op: Op, given: TensorType) -> None:
    """The operand holds positions."""
    require(given.dtype in ("int32", "int64"), f"{op.name}: indices must be int32 or int64, not {given.dtype}")


def within(op: Op, indices: Array, size: int) -> Array:
    """Indices counted from the front; DataError for one that lies outside."""
    if indices.size and not -size <= indices.min() <= indices.max() < size:
        raise DataError(f"{op.name}: indices {indices.min()}..{indices.max()} go beyond a size of {size}")
    return np.where(indices < 0, indices + size, indices)


class _ByIndex(FloatOp):
    float_reason = "unsupported: elements picked or written by index stay in float"


@register
class TakeAlongAxis(_ByIndex):
    """Element i along an axis is that at ``indices[i]`` there, for each place of the other axes by itself."""

    name = "take_along_axis"
    operands = ("data", "indices")
    axis: int = 0

    def infer(self, data: TensorType, indices: TensorType) -> TensorType:
        need_indices(self, indices)
        axis_within(self, self.axis, data.rank)
        need_equal(self, "the rank of indices", indices.rank, data.rank)
        return TensorType(indices.shape, data.dtype)

    def compute(self, data: Array, indices: Array) -> Array:
        axis = self.axis % data.ndim
        inner = tuple(slice(None) if i == axis else slice(size) for i, size in enumerate(indices.shape))
        return np.take_along_axis(data[inner], within(self, indices, data.shape[axis]), axis)


@register
class ScatterElements(_ByIndex):
    """The data with `updates` written to ``indices[i]`` along an axis, each at its place of the other axes."""

    name = "scatter_elements"
    operands = ("data", "indices", "updates")
    axis: int = 0
    reduction: Reduction = "none"

    def infer(self, data: TensorType, indices: TensorType, updates: TensorType) -> TensorType:
        need_indices(self, indices)
        need_same_dtype(self, data, updates)
        axis_within(self, self.axis, data.rank)
        need_equal(self, "the shape of updates", updates.shape, indices.shape)
        return data

    def compute(self, data: Array, indices: Array, updates: Array) -> Array:
        places: list[Array] = [*np.indices(indices.shape, sparse=True)]
        axis = self.axis % data.ndim
        places[axis] = within(self, indices, data.shape[axis])
        return _written(data, tuple(places), updates, self.reduction)


@register
class ScatterNd(_ByIndex):
    """The data with slices of `updates` written where each last row of `indices` points."""

    name = "scatter_nd"
    samples = None
    operands = ("data", "indices", "updates")
    reduction: Reduction = "none"

    def infer(self, data: TensorType, indices: TensorType, updates: TensorType) -> TensorType:
        need_indices(self, indices)
        need_same_dtype(self, data, updates)
        require(indices.rank >= 1, f"{self.name}: indices must have a dimension: {indices}")
        (depth,) = numbers(indices.shape[-1:])
        require(depth <= data.rank, f"{self.name}: indices of {depth} numbers into {data}")
        need_equal(self, "the shape of updates", updates.shape, (*indices.shape[:-1], *data.shape[depth:]))
        return data

    def compute(self, data: Array, indices: Array, updates: Array) -> Array:
        places = tuple(within(self, indices[..., i], data.shape[i]) for i in range(indices.shape[-1]))
        return _written(data, places, updates, self.reduction)


def _written(data: Array, places: tuple[Array, ...], updates: Array, reduction: Reduction) -> Array:
    result = data.copy()
    if reduction == "none":
        result[places] = updates
    else:
        _REDUCE[reduction].at(result, places, updates)
    return result


@register
class TopK(_ByIndex):
    """The `k` largest elements along an axis, or the smallest, in order, and where they are."""

    name = "topk"
    picks = True
    k: Dim
    axis: int = -1
    largest: bool = True

    def infer(self, data: TensorType) -> tuple[TensorType, TensorType]:
        need_number(self, data)
        axis = axis_within(self, self.axis, data.rank)
        size = data.shape[axis]
        fits = not isinstance(self.k, int) or not isinstance(size, int) or 0 <= self.k <= size
        require(fits, f"{self.name}: k={self.k} of {size}")
        shape = replaced(data.shape, axis, self.k)
        return TensorType(shape, data.dtype), TensorType(shape, "int64")

    def compute(self, data: Array) -> tuple[Array, Array]:
        (k,) = numbers((self.k,))
        falling = -data if is_float(dtype_of(data.dtype)) else ~data  # the least integer has no negative
        order = np.argsort(falling if self.largest else data, axis=self.axis, kind="stable")
        order = np.take(order, np.arange(k), axis=self.axis)
        return np.take_along_axis(data, order, self.axis), order.astype(np.int64)


@register
class CumSum(_ByIndex):
    """Sums of all elements up to each one along an axis, or of those before it."""

    name = "cumsum"
    float_reason = "unsupported: sums that grow along an axis have no integer form"
    axis: int
    exclusive: bool = False
    reverse: bool = False

    def infer(self, data: TensorType) -> TensorType:
        need_number(self, data)
        axis_within(self, self.axis, data.rank)
        return data

    def compute(self, data: Array) -> Array:
        data = np.flip(data, self.axis) if self.reverse else data
        sums = np.cumsum(data, axis=self.axis, dtype=data.dtype)
        if self.exclusive:
            count = data.shape[self.axis]
            sums = np.concatenate([np.zeros_like(sums), sums], axis=self.axis)
            sums = np.take(sums, range(count - 1, 2 * count - 1), axis=self.axis)
        return np.flip(sums, self.axis) if self.reverse else sums


@register
class OneHot(_ByIndex):
    """`values[1]` at the places that the data names along a new axis, `values[0]` elsewhere."""

    name = "one_hot"
    operands = ("data", "values")
    places: int
    axis: int = -1

    def infer(self, data: TensorType, values: TensorType) -> TensorType:
        need_equal(self, "the shape of values", values.shape, (2,))
        axis = axis_within(self, self.axis, data.rank + 1)
        return TensorType((*data.shape[:axis], self.places, *data.shape[axis:]), values.dtype)

    def compute(self, data: Array, values: Array) -> Array:
        axis = self.axis % (data.ndim + 1)
        column = np.arange(self.places).reshape(-1, *[1] * (data.ndim - axis))
        index = data.astype(np.int64)
        hot = np.expand_dims(np.where(index < 0, index + self.places, index), axis) == column
        return np.asarray(np.where(hot, values[1], values[0]), values.dtype)


@register
class Triangle(_ByIndex):
    """The last two axes' upper triangle from the `k`-th diagonal on, or the lower one up to it; zero elsewhere."""

    name = "triangle"
    samples = None
    k: Dim = 0
    upper: bool = True

    def infer(self, data: TensorType) -> TensorType:
        require(data.rank >= 2, f"{self.name}: data needs two dimensions or more: {data}")
        return data

    def compute(self, data: Array) -> Array:
        (k,) = numbers((self.k,))
        return np.triu(data, k) if self.upper else np.tril(data, k)


@register
class Mod(_ByIndex):
    """What is left of ``lhs / rhs``, of the sign of rhs, or of lhs as C's ``fmod`` gives it."""

    name = "mod"
    operands = ("lhs", "rhs")
    float_reason = "unsupported: remainders have no integer form"
    fmod: bool = False

    def infer(self, lhs: TensorType, rhs: TensorType) -> TensorType:
        need_same_dtype(self, lhs, rhs)
        return TensorType(broadcast(self, lhs.shape, rhs.shape), lhs.dtype)

    def compute(self, lhs: Array, rhs: Array) -> Array:
        return np.fmod(lhs, rhs) if self.fmod else np.mod(lhs, rhs)
