"""Where a value enters or leaves a program: a dense buffer in the caller's memory."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from qbench.ir.dtypes import numpy_dtype
from qbench.ir.op import Array
from qbench.ir.types import TensorType, dim_factors
from qbench.runtime.memory import empty, held
from qbench.runtime.step import Place


@lru_cache(maxsize=4096)
def whole_shape(kind: TensorType, samples: int) -> tuple[int, ...]:
    """The shape of a value for so many samples, which matter where one of its sizes is a symbol."""
    shape, along = [dim_factors(dim)[0] for dim in kind.shape], sample_axis(kind)
    if along is not None:
        shape[along] *= samples
    return tuple(shape)


@lru_cache(maxsize=4096)
def sample_axis(kind: TensorType) -> int | None:
    """The axis along which samples lie: that of the one open size; None where there is none."""
    return next((axis for axis, dim in enumerate(kind.shape) if dim_factors(dim)[1] is not None), None)


def apart(array: Array, kind: TensorType, samples: int) -> Array:
    """A value with its samples along a new first axis; of a value without samples, it is of size 1."""
    along = None if samples == 1 else sample_axis(kind)
    if along is None:
        return array[None]
    shape = array.shape
    split = array.reshape(*shape[:along], samples, shape[along] // samples, *shape[along + 1 :])
    return np.moveaxis(split, along, 0) if along else split


def joined(parts: Array, kind: TensorType) -> Array:
    """The value whose samples lie along a first axis of their own."""
    if len(parts) == 1:
        return parts[0, ...]  # an array, too, where it has no axes
    along = sample_axis(kind)
    return (np.moveaxis(parts, 0, along) if along else parts).reshape(whole_shape(kind, len(parts)))


def is_batched(kind: TensorType) -> bool:
    """Whether each sample has a part of its own, since a size is a symbol."""
    return sample_axis(kind) is not None


@dataclass(frozen=True)
class Port:
    """A value's buffer in the caller's memory: dense, one sample after the other, each in the order of its place.

    Parameters
    ----------
    buffer
        Its number.
    kind
        Type of the value.
    place
        Where the value lies in the program.
    batched
        Whether each sample has a part of its own; else there is one, or it is the same for all.
    sample
        Every how many elements leave, in the order of the value's axes; 0 for whole values.
    """

    buffer: int
    kind: TensorType
    place: Place
    batched: bool
    sample: int = 0

    @cached_property
    def stride(self) -> int:
        """Bytes from one sample to the next."""
        count = -(-math.prod(self.place.shape) // self.sample) if self.sample else math.prod(self.place.shape)
        return count * self.place.dtype.itemsize if self.batched else 0

    @cached_property
    def _order(self) -> tuple[int, ...]:
        """The axes of the value's samples in the order of the place."""
        return (0, *(1 + axis for axis in self.place.axes))

    @cached_property
    def _in_order(self) -> bool:
        """Whether one sample lies in the order of its place."""
        return self._order == tuple(range(len(self._order)))

    @cached_property
    def _natural(self) -> tuple[int, ...]:
        """The axes of the buffer in the order of the value."""
        return tuple(map(self._order.index, range(len(self._order))))

    @cached_property
    def _dtype(self) -> np.dtype[np.generic]:
        return numpy_dtype(self.kind.dtype)

    def enter(self, array: Array, samples: int) -> Array:
        """The buffer for a value that is known."""
        count = samples if self.batched else 1
        if count > 1 or not self._in_order:
            array = apart(array, self.kind, count).transpose(self._order)
        return held(array if array.flags.c_contiguous and array.flags.aligned else np.require(array, None, ("C", "A")))

    def leave(self, samples: int) -> tuple[Array, Array]:
        """A buffer for a value that is made, and what the value's samples look like, one after the other."""
        count = samples if self.batched else 1
        if self.sample:
            buffer = empty((count, -(-math.prod(self.place.shape) // self.sample)), self._dtype)
            return buffer, buffer
        buffer = empty((count, *self.place.shape), self._dtype)
        return buffer, buffer.transpose(self._natural)
