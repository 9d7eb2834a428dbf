"""Counting as the data comes: one pass over each array, into one histogram that widens as it must."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qbench.errors import DataError, shown
from qbench.ir.dtypes import dtype_of, is_float
from qbench.kernels.histogram import count_bins, extremes

__all__ = ["BINS", "Running", "widened"]

BINS = 2048
"""N: bins on each side of zero."""

_OF_ZEROS = -160
"""Exponent of a tensor of zeros: one less than that of the smallest number of float32."""

_MANY = 1 << 30  # elements that are counted at a time, in 32 bits


class Running:
    """What `Statistics` hold, growing array by array; see there.

    Parameters
    ----------
    tensor
        Name for messages.
    """

    def __init__(self, tensor: str = "") -> None:
        self._where = f"tensor {shown(tensor)}" if tensor else "the array"
        self.min, self.max = np.inf, -np.inf
        self.count = self.zeros = 0
        self.exponent = _OF_ZEROS
        self.counts: NDArray[np.int64] = np.zeros(2 * BINS, np.int64)

    def add(self, array: NDArray[np.generic]) -> None:
        """Count the elements of an array of float16, bfloat16 or float32, of any shape, at least one.

        Raises
        ------
        DataError
            No elements, NaN or infinity among them, or another dtype; nothing was counted.
        """
        if array.dtype == np.float64 or not is_float(dtype_of(array.dtype)):
            raise DataError(f"{self._where} is {array.dtype}; statistics are taken of float16, bfloat16 and float32")
        if array.size == 0:
            raise DataError(f"{self._where} has no elements (shape {array.shape})")
        flat = np.asarray(array, np.float32).ravel(order="K")  # as they lie in memory: their order does not matter
        *keys, zeros = extremes(flat.view(np.int32))
        low, high = map(_number, keys)
        if not np.isfinite(high - low):
            bad = int(np.argmin(np.isfinite(array)))
            index = tuple(int(i) for i in np.unravel_index(bad, array.shape))
            raise DataError(f"{self._where} has {array[index]} at index {index}; check sample and model")
        self._widen(_exponent(max(-low, high)))
        self.min, self.max = min(self.min, low), max(self.max, high)
        self.count += flat.size
        self.zeros += int(zeros)
        # float32 is exact where it scales up; where it scales down, a tiny negative number would become zero
        exact = np.float32 if -127 <= self.exponent <= 0 else np.float64
        for start in range(0, flat.size, _MANY):
            count_bins(flat[start : start + _MANY], exact(2.0**-self.exponent), self.counts)

    def _widen(self, exponent: int) -> None:
        if exponent > self.exponent:
            self.counts = widened(self.counts, exponent - self.exponent)
            self.exponent = exponent


def widened(counts: NDArray[np.int64], doublings: int) -> NDArray[np.int64]:
    """The histogram with bins that are that many times twice as wide."""
    for _ in range(min(doublings, BINS.bit_length())):  # by then all is in the bins beside zero
        pairs = counts.reshape(-1, 2).sum(axis=1)
        counts = np.zeros(2 * BINS, np.int64)
        counts[BINS // 2 : BINS // 2 + BINS] = pairs
    return counts


def _exponent(largest: float) -> int:
    return int(np.frexp(largest)[1]) - (BINS.bit_length() - 1) if largest else _OF_ZEROS


def _number(key: np.int32) -> float:
    """The number that has this key (see `extremes`); a negative zero counts as zero."""
    bits = int(key) if key >= 0 else int(key) ^ 0x7FFFFFFF
    return float(np.array(bits, np.int32).view(np.float32)) + 0.0
