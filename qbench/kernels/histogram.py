"""What statistics count: extremes, zeros and bins whose width is a power of two, each in one pass over an array.

Called on arrays, with no record of arguments, so these are plain Numba functions. Numba's cache does not see changes in
what a function calls: none of them calls another.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["count_bins", "extremes"]

_BLOCK = 2048  # places found at a time, by vector instructions, before they are counted one by one
_TABLES = 4  # counted into in turn: increments of one place would have to wait for each other


@numba.njit(nogil=True, cache=True)
def extremes(bits: NDArray[np.int32]) -> tuple[np.int32, np.int32, int]:
    """Least and greatest key, and the number of zeros, of float32 numbers given as their bits, at least one.

    Keys are integers in the order of the numbers: the bits themselves, below zero with all but the sign flipped. Those
    of NaN and infinity lie beyond all others, so that finite numbers are known by their extremes.
    """
    magnitude = np.int32(0x7FFFFFFF)
    low, high, zeros = magnitude, ~magnitude, 0
    for i in range(bits.size):
        key = bits[i] ^ ((bits[i] >> 31) & magnitude)
        low = min(low, key)
        high = max(high, key)
        zeros += (bits[i] & magnitude) == 0
    return low, high, zeros


@numba.njit(nogil=True, cache=True)
def count_bins(values: NDArray[np.float32], factor: Any, counts: NDArray[np.int64]) -> None:
    """Add to ``counts[floor(x * factor) + counts.size / 2]`` the number of its values.

    Parameters
    ----------
    values
        Fewer than 2^32.
    factor
        A power of two, by which no value leaves the range of `counts`: float32 where all products are exact in it, else
        float64.
    counts
        Changed in place.
    """
    bins = counts.size
    middle = np.int32(bins // 2)
    tables = np.zeros(_TABLES * bins, np.uint32)
    one, two, three, four = tables[:bins], tables[bins : 2 * bins], tables[2 * bins : 3 * bins], tables[3 * bins :]
    places = np.empty(_BLOCK, np.uint32)  # unsigned: what counts from the end costs a comparison per use
    for start in range(0, values.size, _BLOCK):
        block = values[start : start + _BLOCK]
        for i in range(block.size):
            places[i] = np.int32(np.floor(block[i] * factor)) + middle
        whole = block.size // _TABLES * _TABLES
        for i in range(0, whole, _TABLES):
            one[places[i]] += np.uint32(1)
            two[places[i + 1]] += np.uint32(1)
            three[places[i + 2]] += np.uint32(1)
            four[places[i + 3]] += np.uint32(1)
        for i in range(whole, block.size):
            one[places[i]] += np.uint32(1)
    for place in range(bins):
        counts[place] += np.int64(one[place]) + np.int64(two[place]) + np.int64(three[place]) + np.int64(four[place])
