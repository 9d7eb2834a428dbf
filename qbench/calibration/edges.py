"""The thresholds that a histogram can tell apart, and the data between them."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbench.calibration.statistics import Statistics
from qbench.kernels.tally import BINS


@dataclass(frozen=True, slots=True)
class Sides:
    """A histogram by distance from zero, as far as there is data.

    Parameters
    ----------
    edges
        float64[n], n >= 1: upper edges of the bins, ascending; the last is the largest absolute value itself.
    left, right
        int64[n]: negative and other elements between one edge and the next.
    """

    edges: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]

    @property
    def both(self) -> NDArray[np.int64]:
        """int64[n]: elements by their absolute value."""
        return self.left + self.right


def sides(statistics: Statistics) -> Sides:
    """Both sides of a histogram, seen from zero.

    Where the maximum lies on the edge of a bin (6.0 after relu6), all elements of that bin equal it, and they count
    with the bin below, which ends there.
    """
    used = max(math.ceil(statistics.abs_max / statistics.bin_width), 1)
    edges = np.minimum(np.arange(1, used + 1) * statistics.bin_width, statistics.abs_max)
    right = statistics.counts[BINS : BINS + used].copy()
    right[-1] += statistics.counts[BINS + used :].sum()
    return Sides(edges, statistics.counts[BINS - used : BINS][::-1], right)


def relaid(statistics: Statistics, bins: int) -> NDArray[np.int64]:
    """The histogram laid over `bins` equal bins between minus and plus the largest absolute value.

    The data of a bin counts as spread evenly over it, but for zeros, which are known to be in the middle.

    Returns
    -------
    ndarray
        int64[bins], whole elements, `count` in all.
    """
    place = np.clip(np.arange(-BINS, BINS + 1) * statistics.bin_width, statistics.min, statistics.max)
    counts = statistics.counts.copy()
    counts[BINS] -= statistics.zeros
    edges = np.linspace(-statistics.abs_max, statistics.abs_max, bins + 1)
    below = np.interp(edges, place, np.concatenate([[0], np.cumsum(counts)]))
    below[0], below[-1] = 0, counts.sum()
    laid = np.diff(np.rint(below)).astype(np.int64)
    laid[bins // 2] += statistics.zeros
    return laid
