"""Constants that a file stores as integers: they stay integers through changes of layout."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from qbench.errors import shown
from qbench.frontends.onnx.source import Array
from qbench.ir.qparams import QParams
from qbench.quant.arithmetic import dequantize


@dataclass(frozen=True, eq=False)
class Stored:
    """Integers that stand for a constant of real numbers.

    Parameters
    ----------
    name
        The file's name of the integers.
    integers
        The array.
    q
        What they mean.
    source
        The file's node that dequantizes them.
    dtype
        Float type of the real numbers.
    """

    name: str
    integers: Array
    q: QParams
    source: str
    dtype: str = "float32"

    @property
    def reals(self) -> Array:
        """The real numbers."""
        reals = dequantize(self.integers, self.q)
        return reals if self.dtype == "float32" else reals.astype(self.dtype)

    def moved(self, move: Callable[[Array], Array]) -> Stored:
        """The same elements in another layout.

        Parameters
        ----------
        move
            Moves the elements of any array of this shape.

        Raises
        ------
        ValueError
            The scales would no longer run along one axis.
        """
        narrow = self.integers.dtype
        integers = np.ascontiguousarray(move(self.integers.astype(np.int32))).astype(narrow)
        if self.q.axis is None:
            return Stored(self.name, integers, self.q, self.source, self.dtype)
        count: int = self.integers.shape[self.q.axis]
        index = np.arange(count).reshape([-1 if axis == self.q.axis else 1 for axis in range(self.integers.ndim)])
        marks = move(np.broadcast_to(index, self.integers.shape).astype(np.int32))
        same, blocks = [*range(count)], self.q.block is not None
        for axis, line in sorted(_lines(marks), key=lambda found: found[1] != same):
            if not blocks or (marks.ndim == 2 and line == same):
                q = dataclasses.replace(self.q, axis=axis) if line == same else _repeated(self.q, axis, line)
                return Stored(self.name, integers, q, self.source, self.dtype)
        raise ValueError(f"the scales of {shown(self.name)} would run along no axis of the shape {list(marks.shape)}")


def _lines(marks: Array) -> list[tuple[int, list[int]]]:
    """The axes that marks run along, being the same along all others, and the marks there."""
    found: list[tuple[int, list[int]]] = []
    for axis in range(marks.ndim if marks.size else 0):
        line = marks[tuple(slice(None) if i == axis else slice(1) for i in range(marks.ndim))]
        if (marks == line).all():
            found.append((axis, line.ravel().tolist()))
    return found


def _repeated(q: QParams, axis: int, indices: list[int]) -> QParams:
    scale, zero_point = (tuple(of[index] for index in indices) for of in (q.scales, q.zero_points))
    return dataclasses.replace(q, axis=axis, scale=scale, zero_point=zero_point)
