"""Outputs of a few numbers for each sample, each with a meaning of its own: they tell by how they vary.

A temperature of 290 K that varies by 5 is lost in an error of 5, however small that is beside 290; and of two numbers
the larger one hides what becomes of the other. So each error counts beside the variance of its number. Nor may large
samples hide small ones, as where prices of 5 and of 2000 are forecast: where a sample has more than a few numbers, its
errors count beside how these vary, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import add

import numpy as np
from numpy.typing import NDArray

from qbench.evaluate.measure import Deviation
from qbench.ir.op import Array

_MOST, _ENOUGH = 64, 3
"""Numbers of a sample, less than these; and samples that tell how much they vary, at least."""
_SERIES = 8
"""Numbers that tell how a sample varies within itself, at least."""
_TIMES_IN_SAMPLES = 4.0
"""So many times the noise will do where each sample counts as much: one of few that is unlike the others is lost."""
_ALIKE = 2.0**10
"""Numbers whose variances are within this of the largest may be of one kind, as scores are: they count together."""
_STILL = 1e-8
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
    lost
        Samples, each as far as it is lost: its noise in parts of how its numbers vary, 1 at most.
    """

    samples: int = 0
    total: tuple[float, ...] = ()
    squares: tuple[float, ...] = ()
    noise: tuple[float, ...] = ()
    lost: float = 0.0

    @classmethod
    def of(cls, wanted: Array, given: Array | None = None) -> Columns:
        """Of what two models answer to some samples, one after the other along axis 0; the second may be left out.
        Each step of a series of a few numbers counts as a sample.

        Nothing where a sample has many numbers, or the float model's are not finite.
        """
        rows = _rows(wanted)
        if not 0 < rows.shape[1] < _MOST or not np.isfinite(rows).all():
            return cls()
        wrong = np.square((rows if given is None else _rows(given)) - rows)
        total, squares, sums = (tuple(each.sum(axis=0).tolist()) for each in (rows, np.square(rows), wrong))
        return cls(len(rows), total, squares, sums, _lost(rows, wrong))

    def __add__(self, other: Columns) -> Columns:
        """Nothing, where they are sums over different numbers."""
        if not self.samples or not other.samples:
            return self if self.samples else other
        if len(self.total) != len(other.total):
            return Columns()
        pairs = (self.total, other.total), (self.squares, other.squares), (self.noise, other.noise)
        total, squares, noise = (tuple(map(add, *pair)) for pair in pairs)
        return Columns(self.samples + other.samples, total, squares, noise, self.lost + other.lost)

    @property
    def power(self) -> tuple[float, ...]:
        """The signal of each number in a usual sample: the mean of those that are alike; none by too few samples."""
        if self.samples < _ENOUGH:
            return ()
        square, variance = np.asarray(self.squares) / self.samples, self._variance
        own = np.where(variance > _STILL * square, variance, square)
        alike = own > own.max(initial=0) / _ALIKE
        return tuple(np.where(alike, own.mean(where=alike) if alike.any() else 0, own).tolist())

    @property
    def _variance(self) -> NDArray[np.float64]:
        return np.asarray(self.squares) / self.samples - np.square(np.asarray(self.total) / self.samples)

    @property
    def sqnr_db(self) -> float | None:
        """The lower SQNR of what is :meth:`apart`; None where it is not known how numbers vary."""
        ratios = [part.sqnr_db for part in self.apart(self.power)]
        return min((ratio for ratio in ratios if ratio is not None), default=None) if None not in ratios else None

    def apart(self, power: Sequence[float]) -> tuple[Deviation, ...]:
        """Signal and noise of all numbers, each in parts of its power in a usual sample, where these vary no more; and
        of all samples, each in parts of how it varies, of which 6 dB less will do."""
        if not self.samples:
            return (Deviation(),) * (1 + (len(power) >= _SERIES))
        known = np.asarray(power) > 0
        usual = np.asarray(power)[known]
        signal = self.samples * np.maximum(self._variance[known] / usual, 1.0).sum()
        noise = (np.asarray(self.noise)[known] / usual).sum()
        numbers = Deviation(float(signal), float(noise), count=self.samples * len(usual))
        return (numbers, _each(self.samples, self.lost)) if len(power) >= _SERIES else (numbers,)


def samples_apart(wanted: Array, given: Array) -> Deviation:
    """Signal and noise of vectors, one after the other along axis 0, as `Columns.apart` has those of samples; nothing
    where they have too few numbers to vary."""
    rows = _rows(wanted)
    if rows.shape[1] < _SERIES:
        return Deviation()
    return _each(len(rows), _lost(rows, np.square(_rows(given) - rows)))


def powers_of(outputs: Sequence[Array]) -> tuple[float, ...]:
    """The signal of each number of an output, by what a float model answers to some samples; none where samples are too
    few, or have many numbers."""
    made = [Columns.of(array) for array in outputs]
    if len({len(each.total) for each in made}) > 1:
        return ()
    return sum(made, Columns()).power


def _lost(rows: NDArray[np.float64], wrong: NDArray[np.float64]) -> float:
    """Samples, each as far as it is lost."""
    varied, noise = rows.var(axis=1), wrong.mean(axis=1)
    kept = noise < varied
    return float((noise[kept] / varied[kept]).sum() + np.count_nonzero(~kept & (varied > 0)))


def _each(samples: int, lost: float) -> Deviation:
    return Deviation(float(samples), lost / _TIMES_IN_SAMPLES, count=samples)


def _rows(array: Array) -> NDArray[np.float64]:
    """One for each sample; of series of a few numbers, one for each of their steps."""
    count = math.prod(array.shape[1:])
    if array.ndim == 3 and count >= _MOST and min(array.shape[1:]) < _SERIES:
        array = np.moveaxis(array, 1 + int(np.argmin(array.shape[1:])), 2).reshape(-1, min(array.shape[1:]))
        count = array.shape[1]
    return array.reshape(len(array) if array.ndim else 1, count).astype(np.float64)
