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
        for axis, size in enumerate(marks.shape):
            shape = [-1 if i == axis else 1 for i in range(marks.ndim)]
            if size == count and np.array_equal(marks, np.broadcast_to(np.arange(count).reshape(shape), marks.shape)):
                q = dataclasses.replace(self.q, axis=axis)
                if q.block is not None and marks.ndim != 2:
                    break
                return Stored(self.name, integers, q, self.source, self.dtype)
        raise ValueError(f"the scales of {shown(self.name)} would run along no axis of the shape {list(marks.shape)}")
