"""What a program is made of: where values lie, and the instructions that make them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from qbench.kernels.kernel import Kernel
from qbench.kernels.memory import reference

EXTERNAL = -1
"""In place of a buffer's offset in the arena: the buffer is the caller's memory."""


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of an array without gaps."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


@dataclass(frozen=True)
class Place:
    """Where a value lies.

    Parameters
    ----------
    buffer
        Number of the buffer; see :class:`~qbench.runtime.program.Program`.
    offset
        Bytes from the start of the buffer.
    dtype
        Of an element in memory.
    shape, strides
        In the order of the memory's axes; strides count elements. A symbolic size is 1 here: one sample.
    axes
        Which axis of the value each axis in memory is: ``(0, 2, 3, 1)`` where channels come last.
    flipped
        Whether the sign bit is: int8 lies as codes from 0, uint16 with a sign.
    """

    buffer: int
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    axes: tuple[int, ...]
    flipped: bool = False

    @classmethod
    def dense(cls, buffer: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Place:
        """The whole of a buffer, row-major."""
        return cls(buffer, 0, dtype, shape, row_major(shape), tuple(range(len(shape))))

    @property
    def sign_bit(self) -> int:
        """Of an element: what is flipped."""
        return 1 << (8 * self.dtype.itemsize - 1)

    @property
    def letters(self) -> Any:
        """The type of an element in NumPy's letters, as kernels are made for."""
        return self.dtype.str[1:]

    @property
    def natural_shape(self) -> tuple[int, ...]:
        """The value's own."""
        return tuple(self.shape[self.axes.index(axis)] for axis in range(len(self.axes)))

    @property
    def natural_strides(self) -> tuple[int, ...]:
        """In elements, in the order of the value's own axes."""
        return tuple(self.strides[self.axes.index(axis)] for axis in range(len(self.axes)))

    @property
    def reference(self) -> int:
        """What kernels take for the place of the first element."""
        return reference(self.buffer, self.offset)

    @property
    def contiguous(self) -> bool:
        """Whether the elements lie without gaps, in the order of the memory's axes."""
        wanted = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != wanted:
                return False
            wanted *= size
        return True

    @property
    def pitch(self) -> int | None:
        """Elements between the rows that the last axis makes, where all of them are equally far apart; else None."""
        pitch = wanted = 0
        for size, stride in zip(reversed(self.shape[:-1]), reversed(self.strides[:-1]), strict=True):
            if size == 1:
                continue
            if pitch == 0:
                pitch = wanted = stride
            if stride != wanted:
                return None
            wanted *= size
        return pitch or self.shape[-1]

    def ordered(self, axes: tuple[int, ...]) -> Place:
        """The same place, its axes listed in this order: to be read as that layout, where both lie alike."""
        order = [self.axes.index(axis) for axis in axes]
        shape, strides = tuple(self.shape[i] for i in order), tuple(self.strides[i] for i in order)
        return replace(self, shape=shape, strides=strides, axes=axes)

    def part(self, axis: int, start: int, shape: tuple[int, ...]) -> Place:
        """A part of this place: `shape` elements of the value, from `start` on along one of the value's axes."""
        along = self.axes.index(axis)
        return replace(
            self,
            offset=self.offset + start * self.strides[along] * self.dtype.itemsize,
            shape=tuple(shape[axis] for axis in self.axes),
        )

    @property
    def nbytes(self) -> int:
        """Size of the elements, without the gaps between them."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True)
class Rows:
    """How an instruction does a few rows of its result alone, from the same rows of what it reads.

    Parameters
    ----------
    groups, count
        The rows lie in so many groups of so many; in one group where nothing changes from one to the next.
    reads
        The fields with the reference of the first row of what is read, each with others that say where its rows lie.
    makes
        The field with the reference of the first row that is made; empty where nothing is.
    pitches
        Bytes from row to row, for each reference that moves.
    jumps
        Bytes from group to group, likewise.
    counts
        The fields that say how much is done, and how much of it is one row.
    single
        What other fields say where one group is done alone.
    together
        Rows that take as long as one of them.
    """

    groups: int
    count: int
    reads: Mapping[str, tuple[str, ...]]
    makes: str
    pitches: Mapping[str, int]
    counts: Mapping[str, int]
    jumps: Mapping[str, int] = field(default_factory=dict[str, int])
    single: Mapping[str, int] = field(default_factory=dict[str, int])
    together: int = 1


@dataclass(frozen=True, eq=False)
class Instruction:
    """One launch of a kernel.

    Parameters
    ----------
    kernel
        What runs.
    arguments
        One record of ``kernel.arguments``; places are references.
    label
        What it makes: the name of a value, or of a part of the work.
    rows
        How it does a few rows alone, if it can.
    """

    kernel: Kernel
    arguments: np.recarray[Any, Any]
    label: str
    rows: Rows | None = None

    def reads_rows_of(self, other: Instruction) -> str | None:
        """The field in which this finds the rows that the other one makes, as many and as far apart; None for none."""
        made, mine = other.rows, self.rows
        if made is None or mine is None or made.groups * made.count != mine.groups * mine.count:
            return None
        place = other.arguments[0][made.makes], made.pitches[made.makes]
        return next((name for name in mine.reads if (self.arguments[0][name], mine.pitches[name]) == place), None)


@dataclass(frozen=True, eq=False)
class Step:
    """What a program does for some nodes of the graph.

    Parameters
    ----------
    name
        Unique in the program.
    nodes
        Names of the graph's nodes that it stands for.
    inputs, outputs
        Names of the values that it reads and makes. What lies between fused nodes is neither.
    instructions
        How. None where there is nothing to do: a reshape in place, a concat whose parts were written in place.
    macs
        Multiply-accumulates for one sample.
    reason
        Why no kernel does it: the interpreter then runs `nodes` on arrays.
    pointers
        The indices among the inputs that must point into these sizes, one for each of their numbers.
    """

    name: str
    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    instructions: tuple[Instruction, ...] = ()
    macs: int = 0
    reason: str = ""
    pointers: Mapping[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
