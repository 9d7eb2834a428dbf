"""Where a value enters or leaves a program: a dense buffer in the caller's memory."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from qbench.ir.dtypes import numpy_dtype
from qbench.ir.op import Array
from qbench.ir.types import TensorType, dim_factors
from qbench.runtime.memory import empty, held
from qbench.runtime.step import Place


def whole_shape(kind: TensorType, samples: int) -> tuple[int, ...]:
    """The shape of a value for so many samples, which matter where its first size is a symbol."""
    shape = tuple(dim_factors(dim)[0] for dim in kind.shape)
    return (shape[0] * samples, *shape[1:]) if is_batched(kind) else shape


def is_batched(kind: TensorType) -> bool:
    """Whether each sample has a part of its own, since the first size is a symbol."""
    return bool(kind.shape) and dim_factors(kind.shape[0])[1] is not None


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
    def _in_order(self) -> bool:
        return self.place.axes == tuple(range(len(self.place.axes)))

    @cached_property
    def _dtype(self) -> np.dtype[np.generic]:
        return numpy_dtype(self.kind.dtype)

    def enter(self, array: Array, samples: int) -> Array:
        """The buffer for a value that is known."""
        if not self._in_order:
            parts = array.reshape(samples if self.batched else 1, *self.place.natural_shape)
            array = parts.transpose(0, *(1 + axis for axis in self.place.axes))
        return held(np.require(array, requirements=("C", "A")))

    def leave(self, samples: int) -> tuple[Array, Array]:
        """A buffer for a value that is made, and what it looks like to the caller."""
        count = samples if self.batched else 1
        if self.sample:
            buffer = empty((count, -(-math.prod(self.place.shape) // self.sample)), self._dtype)
            return buffer, buffer
        if self._in_order:
            buffer = empty(whole_shape(self.kind, count), self._dtype)
            return buffer, buffer
        buffer = empty((count, *self.place.shape), self._dtype)
        axes = (1 + self.place.axes.index(axis) for axis in range(len(self.place.axes)))
        return buffer, buffer.transpose(0, *axes).reshape(whole_shape(self.kind, count))
