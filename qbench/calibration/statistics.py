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
from qbench.kernels.tally import BINS
from qbench.runtime.tallies import Tally


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True)
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

    @property
    def typical(self) -> float:
        """The median of the magnitudes of all elements that are not zero, to half a bin; 0 where all are."""
        middle = len(self.counts) // 2
        sums = np.cumsum(self.counts[middle:] + self.counts[:middle][::-1], dtype=np.int64) - self.zeros
        half = int(sums[-1]) / 2
        return (int(np.searchsorted(sums, half)) + 0.5) * 2.0**self.exponent if half else 0.0

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
        found = Tally()
        count(array, found, tensor)
        return cls.taken(found)

    @classmethod
    def taken(cls, found: Tally) -> Statistics:
        """The statistics of all that was counted, at least one value; `found` must not count any more."""
        low, high = _number(found["low"]), _number(found["high"])
        channels = None if found.axis is None else ChannelMeans.taken(found)
        return cls(low, high, found["count"], found["zeros"], found["exponent"], found.counts, channels)

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
            _widened(self.counts, exponent - self.exponent) + _widened(other.counts, exponent - other.exponent),
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


def count(array: NDArray[np.generic], tally: Tally, tensor: str = "") -> None:
    """Add an array of float16, bfloat16 or float32, of any shape, at least one element, to a tally.

    Parameters
    ----------
    array
        One sample.
    tally
        Changed in place.
    tensor
        Name for messages.

    Raises
    ------
    DataError
        No elements, NaN among them, or another dtype.
    """
    where = f"tensor {shown(tensor)}" if tensor else "the array"
    if array.dtype == np.float64 or not is_float(dtype_of(array.dtype)):
        raise DataError(f"{where} is {array.dtype}; statistics are taken of float16, bfloat16 and float32")
    if array.size == 0:
        raise DataError(f"{where} has no elements (shape {array.shape})")
    if not tally.add(array):
        bad = int(np.argmax(np.isnan(array)))
        index = tuple(int(i) for i in np.unravel_index(bad, array.shape))
        raise DataError(f"{where} has {array[index]} at index {index}; check sample and model")


def _widened(counts: NDArray[np.int64], doublings: int) -> NDArray[np.int64]:
    """The histogram with bins that are that many times twice as wide."""
    for _ in range(min(doublings, BINS.bit_length())):  # by then all is in the bins beside zero
        pairs = counts.reshape(-1, 2).sum(axis=1)
        counts = np.zeros(2 * BINS, np.int64)
        counts[BINS // 2 : BINS // 2 + BINS] = pairs
    return counts


def _number(key: int) -> float:
    """The number that has this key (see `TALLY`); a negative zero counts as zero."""
    bits = key if key >= 0 else key ^ 0x7FFFFFFF
    return float(np.array(bits, np.int32).view(np.float32)) + 0.0
