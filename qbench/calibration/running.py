"""Counting arrays as they come: what is wrong with them is said by name and index."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qbench.errors import DataError, shown
from qbench.ir.dtypes import dtype_of, is_float
from qbench.kernels.tally import BINS
from qbench.runtime.tallies import Tally

__all__ = ["count", "number", "widened"]


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


def widened(counts: NDArray[np.int64], doublings: int) -> NDArray[np.int64]:
    """The histogram with bins that are that many times twice as wide."""
    for _ in range(min(doublings, BINS.bit_length())):  # by then all is in the bins beside zero
        pairs = counts.reshape(-1, 2).sum(axis=1)
        counts = np.zeros(2 * BINS, np.int64)
        counts[BINS // 2 : BINS // 2 + BINS] = pairs
    return counts


def number(key: int) -> float:
    """The number that has this key (see `TALLY`); a negative zero counts as zero."""
    bits = key if key >= 0 else key ^ 0x7FFFFFFF
    return float(np.array(bits, np.int32).view(np.float32)) + 0.0
