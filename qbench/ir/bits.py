"""Integers of few bits, several of them to a byte, the first in the lowest bits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def packed(numbers: NDArray[Any], bits: int = 4) -> NDArray[Any]:
    """Bytes that hold the numbers along the last axis, of which each has 4 or 8 bits and no sign.

    Parameters
    ----------
    numbers
        Of uint8.
    bits
        Of each.
    """
    if bits == 8:
        return numbers
    even = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, numbers.shape[-1] % 2)])
    return np.ascontiguousarray(even[..., ::2] | even[..., 1::2] << 4)


def unpacked(stored: NDArray[np.uint8], bits: int = 4) -> NDArray[np.uint8]:
    """All numbers of 2, 4 or 8 bits that bytes have room for, along the last axis."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = (stored[..., None] >> shifts) & np.uint8(2**bits - 1)
    return parts.reshape(*stored.shape[:-1], -1)


def signed(halves: NDArray[np.uint8]) -> NDArray[np.int8]:
    """Numbers of 4 bits with the sign that the highest of them says."""
    return (halves ^ 8).astype(np.int8) - 8
