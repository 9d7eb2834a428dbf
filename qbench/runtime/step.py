"""What a program is made of: where values lie, and the instructions that make them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from qbench.kernels.kernel import Kernel
from qbench.kernels.memory import reference

__all__ = ["EXTERNAL", "Instruction", "Place", "Step"]

EXTERNAL = -1
"""In place of a buffer's offset in the arena: the buffer is the caller's memory."""


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
        Whether int8 is stored as codes, value + 128.
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
        strides = tuple(int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(len(shape)))
        return cls(buffer, 0, dtype, shape, strides, tuple(range(len(shape))))

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
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize


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
    """

    kernel: Kernel
    arguments: np.recarray[Any, Any]
    label: str


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
    """

    name: str
    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    instructions: tuple[Instruction, ...] = ()
    macs: int = 0
    reason: str = ""
