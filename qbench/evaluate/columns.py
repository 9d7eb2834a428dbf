"""Outputs of a few numbers for each sample, each with a meaning of its own: they tell by how they vary.

A temperature of 290 K that varies by 5 is lost in an error of 5, however small that is beside 290; and of two numbers
the larger one hides what becomes of the other. So each error counts beside the variance of its number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbench.evaluate.measure import Deviation
from qbench.ir.op import Array

_MOST, _ENOUGH = 64, 8
"""Numbers of a sample, less than these; and samples that tell how much they vary, at least."""
_STILL = 1e-4
"""A number whose variance is less than this part of its mean square does not vary: an error counts beside itself."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Sums over samples, for each number; they add up.

    Parameters
    ----------
    samples
        How many.
    total, squares, noise
        Of the float model's numbers, of their squares, and of the squares of the differences to them.
    """

    samples: int = 0
    total: tuple[float, ...] = ()
    squares: tuple[float, ...] = ()
    noise: tuple[float, ...] = ()

    @classmethod
    def of(cls, wanted: Array, given: Array | None = None) -> Columns:
        """Of what two models answer to some samples, one after the other along axis 0; the second may be left out.

        Nothing where a sample has many numbers, or one is not finite.
        """
        rows = _rows(wanted)
        others = rows if given is None else _rows(given)
        if not 0 < rows.shape[1] < _MOST or not (np.isfinite(rows) & np.isfinite(others)).all():
            return cls()
        sums = rows.sum(axis=0), np.square(rows).sum(axis=0), np.square(others - rows).sum(axis=0)
        return cls(len(rows), *(tuple(each.tolist()) for each in sums))

    def __add__(self, other: Columns) -> Columns:
        """Nothing, where they are sums over different numbers."""
        if not self.samples or not other.samples:
            return self if self.samples else other
        if len(self.total) != len(other.total):
            return Columns()
        sums = ((self.total, other.total), (self.squares, other.squares), (self.noise, other.noise))
        return Columns(self.samples + other.samples, *(tuple(map(sum, zip(*pair, strict=True))) for pair in sums))

    @property
    def power(self) -> tuple[float, ...]:
        """The signal of each number in a usual sample; none by too few samples."""
        if self.samples < _ENOUGH:
            return ()
        square = np.asarray(self.squares) / self.samples
        variance = square - np.square(np.asarray(self.total) / self.samples)
        return tuple(np.where(variance > _STILL * square, variance, square).tolist())

    @property
    def sqnr_db(self) -> float | None:
        """The signal of all numbers beside their noise, each in parts of its own signal; None where that is unknown."""
        return self.beside(self.power).sqnr_db

    def beside(self, power: Sequence[float]) -> Deviation:
        """Signal and noise in parts of a usual sample's power."""
        wide = [(noise / each) for noise, each in zip(self.noise, power, strict=False) if each > 0]
        return Deviation(float(self.samples * len(wide)), sum(wide), count=self.samples * len(wide))


def powers_of(outputs: Sequence[Array]) -> tuple[float, ...]:
    """The signal of each number of an output, by what a float model answers to some samples; none where samples are too
    few, or have many numbers."""
    made = [Columns.of(array) for array in outputs]
    if len({len(each.total) for each in made}) > 1:
        return ()
    return sum(made, Columns()).power


def _rows(array: Array) -> NDArray[np.float64]:
    return array.reshape(len(array) if array.ndim else 1, math.prod(array.shape[1:])).astype(np.float64)
