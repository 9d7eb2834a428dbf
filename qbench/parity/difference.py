"""How often, how far and in which channels two arrays of the same value differ."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.ir.op import Array

FARTHEST = 255
"""Integers farther apart than this stand at the ends of the histogram: nothing of 8 bits is."""

TOLERANCE = 1e-5
"""Real numbers are the same where they differ by no more than this, relative to the largest one of their tensor."""

_DECADES = 12


@dataclass(frozen=True)
class Difference:
    """Two arrays of one value, compared over all data.

    Parameters
    ----------
    elements, different
        How many there are, and how many of them differ.
    max_lsb
        The largest difference of integers, in steps; None for real numbers.
    max_relative
        The largest difference of real numbers, relative to the largest one in the tensor; None for integers.
    histogram
        For integers pairs of (left - right, count), without those that are equal; the ends, -255 and 255, hold what
        is farther apart. For real numbers pairs of (decade, count): -3 is a relative difference from 0.001 to 0.01.
    channels
        How many elements differ in each channel; empty where a value has none.
    channel_max
        The largest difference in each channel, in steps or relative.
    """

    elements: int
    different: int
    max_lsb: int | None = None
    max_relative: float | None = None
    histogram: tuple[tuple[int, int], ...] = ()
    channels: tuple[int, ...] = ()
    channel_max: tuple[float, ...] = ()

    @property
    def rate(self) -> float:
        """The fraction of elements that differ."""
        return self.different / self.elements if self.elements else 0.0


class Differences:
    """Grows with each pair of arrays.

    Parameters
    ----------
    is_real
        Whether the value holds real numbers.
    axis
        Along which the channels lie, or None.
    tolerance
        See `TOLERANCE`.
    """

    def __init__(self, is_real: bool, axis: int | None = None, tolerance: float = TOLERANCE) -> None:
        self._is_real, self._axis, self._tolerance = is_real, axis, tolerance
        self._elements = self._different = 0
        self._largest = 0.0
        self._counts = np.zeros(_DECADES + 1 if is_real else 2 * FARTHEST + 1, np.int64)
        self._channels: NDArray[np.int64] | None = None
        self._channel_max: NDArray[np.float64] | None = None

    def add(self, left: Array, right: Array) -> None:
        """Compare two arrays of the same shape."""
        distance = _relative(left, right) if self._is_real else left.astype(np.int64) - right.astype(np.int64)
        far = np.abs(distance)
        differs = far > (self._tolerance if self._is_real else 0)
        self._elements += left.size
        count = int(np.count_nonzero(differs))
        if self._axis is not None:
            self._add_channels(differs, far, self._axis)
        if not far.size:
            return
        self._largest = max(self._largest, float(far.max()))
        if count:
            self._different += count
            bins = _decades(far[differs]) if self._is_real else distance[differs].clip(-FARTHEST, FARTHEST) + FARTHEST
            self._counts += np.bincount(bins.astype(np.int64), minlength=len(self._counts))

    def _add_channels(self, differs: NDArray[np.bool_], far: NDArray[Any], axis: int) -> None:
        others = tuple(i for i in range(far.ndim) if i != axis)
        counts, largest = differs.sum(axis=others), far.max(axis=others, initial=0).astype(np.float64)
        self._channels = counts if self._channels is None else self._channels + counts
        self._channel_max = largest if self._channel_max is None else np.maximum(self._channel_max, largest)

    def done(self) -> Difference:
        """What was found."""
        first = -_DECADES if self._is_real else -FARTHEST
        histogram = [(first + i, int(count)) for i, count in enumerate(self._counts) if count]
        return Difference(
            self._elements,
            self._different,
            max_lsb=None if self._is_real else int(self._largest),
            max_relative=self._largest if self._is_real else None,
            histogram=tuple(histogram),
            channels=() if self._channels is None else tuple(map(int, self._channels)),
            channel_max=() if self._channel_max is None else tuple(map(float, self._channel_max)),
        )


def _relative(left: Array, right: Array) -> NDArray[np.float64]:
    """Differences over the largest finite magnitude on the right; infinite where only one of two is no number."""
    a, b = left.astype(np.float64), right.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    largest = float(np.abs(b[np.isfinite(b)]).max(initial=0.0)) or 1.0
    with np.errstate(invalid="ignore"):
        distance = np.abs(a - b) / largest
    return np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))


def _decades(relative: NDArray[np.float64]) -> NDArray[np.int64]:
    """Bins of powers of ten, from 1e-12 on; the last one holds everything from 1 on."""
    with np.errstate(divide="ignore"):
        return np.floor(np.log10(relative)).clip(-_DECADES, 0).astype(np.int64) + _DECADES
