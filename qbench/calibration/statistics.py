"""What one streaming pass remembers of a tensor: exact, bounded, and the same for any order of the data.

The histogram's bins have a power of two as their width and are anchored at zero, so growing it means merging
neighbouring pairs of bins, which loses nothing that depends on when it happens. Nothing in here is a float sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from qbench.calibration.means import ChannelMeans
from qbench.errors import CalibrationError, DataError, shown
from qbench.ir.dtypes import dtype_of, is_float

__all__ = ["BINS", "Statistics"]

BINS = 2048
"""N: bins on each side of zero."""

_OF_ZEROS = -160
"""Exponent of a tensor of zeros: one less than that of the smallest number of float32."""

_CHUNK = 1 << 16  # elements that stay in the cache through the passes below


@dataclass(frozen=True, eq=False, slots=True)
class Statistics:
    """Minimum, maximum, count and histogram of all values that a tensor took.

    Parameters
    ----------
    min, max
        Exact; a negative zero counts as zero.
    count
        Number of elements, at least 1.
    zeros
        How many of them are exactly zero: a quantizer makes no error there, however wide the bin is.
    exponent
        e, the smallest with ``max(abs(x)) < BINS * 2**e``; -160 where all data is zero.
    counts
        int64[2 * BINS], read-only: ``counts[BINS + k]`` elements have ``floor(x * 2**-e) == k``.
    channels
        The mean of each channel, where `collect` takes it: of what a convolution or dense layer reads.
    """

    min: float
    max: float
    count: int
    zeros: int
    exponent: int
    counts: NDArray[np.int64]
    channels: ChannelMeans | None = None

    def __post_init__(self) -> None:
        self.counts.flags.writeable = False

    @classmethod
    def of(cls, array: NDArray[np.generic], tensor: str = "") -> Statistics:
        """Statistics of one array of float16, bfloat16 or float32.

        Parameters
        ----------
        array
            Any shape, at least one element.
        tensor
            Name for messages.

        Raises
        ------
        DataError
            No elements, NaN or infinity among them, or another dtype.
        """
        where = f"tensor {shown(tensor)}" if tensor else "the array"
        if array.dtype == np.float64 or not is_float(dtype_of(array.dtype)):
            raise DataError(f"{where} is {array.dtype}; statistics are taken of float16, bfloat16 and float32")
        if array.size == 0:
            raise DataError(f"{where} has no elements (shape {array.shape})")
        flat = np.ascontiguousarray(array, np.float32).reshape(-1)
        low, high = float(flat.min()) + 0.0, float(flat.max()) + 0.0  # + 0.0 turns -0.0 into 0.0
        if not np.isfinite(high - low):
            bad = int(np.argmin(np.isfinite(flat)))
            index = tuple(int(i) for i in np.unravel_index(bad, array.shape))
            raise DataError(f"{where} has {flat[bad]} at index {index}; check sample and model")
        exponent = _exponent(max(-low, high))
        # float32 is exact where it scales up; where it scales down, a tiny negative number would become zero
        exact = np.float32 if -127 <= exponent <= 0 else np.float64
        counts = np.zeros(2 * BINS, np.int64)
        for start in range(0, flat.size, _CHUNK):
            scaled = np.multiply(flat[start : start + _CHUNK], exact(2.0**-exponent), dtype=exact)
            np.floor(scaled, out=scaled)
            scaled += BINS
            counts += np.bincount(scaled.astype(np.int32), minlength=2 * BINS)
        zeros = int(np.count_nonzero(flat == 0))
        return cls(low, high, flat.size, zeros, exponent, counts)

    @staticmethod
    def merged(parts: Iterable[Statistics]) -> Statistics:
        """Statistics of all data of the parts together; CalibrationError where there are none."""
        parts = tuple(parts)
        if not parts:
            raise CalibrationError("there are no statistics to merge")
        return reduce(Statistics.merge, parts)

    def merge(self, other: Statistics) -> Statistics:
        """Statistics of the data of both: the same, bit for bit, as if it had been seen as one array."""
        exponent = max(self.exponent, other.exponent)
        return Statistics(
            min(self.min, other.min),
            max(self.max, other.max),
            self.count + other.count,
            self.zeros + other.zeros,
            exponent,
            _widened(self, exponent) + _widened(other, exponent),
            self.channels.merge(other.channels) if self.channels and other.channels else None,
        )

    @property
    def abs_max(self) -> float:
        """Largest absolute value."""
        return max(-self.min, self.max)

    @property
    def bin_width(self) -> float:
        """``2**e``."""
        return 2.0**self.exponent

    def __reduce__(self) -> tuple[type[Statistics], tuple[object, ...]]:
        """Made anew on the other side of a process boundary, so that it is read-only there as well."""
        return Statistics, (self.min, self.max, self.count, self.zeros, self.exponent, self.counts, self.channels)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Statistics)
            and (self.min, self.max, self.count, self.zeros, self.exponent, self.channels)
            == (other.min, other.max, other.count, other.zeros, other.exponent, other.channels)
            and np.array_equal(self.counts, other.counts)
        )

    def __hash__(self) -> int:
        return hash((self.min, self.max, self.count, self.zeros, self.exponent, self.counts.tobytes()))


def _exponent(largest: float) -> int:
    return int(np.frexp(largest)[1]) - (BINS.bit_length() - 1) if largest else _OF_ZEROS


def _widened(statistics: Statistics, exponent: int) -> NDArray[np.int64]:
    counts = statistics.counts
    for _ in range(min(exponent - statistics.exponent, BINS.bit_length())):  # by then all is in the bins beside zero
        pairs = counts.reshape(-1, 2).sum(axis=1)
        counts = np.zeros(2 * BINS, np.int64)
        counts[BINS // 2 : BINS // 2 + BINS] = pairs
    return counts
