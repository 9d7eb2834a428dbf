"""Means of channels, and their exact sums; see `qbench.kernels.histogram` for why these are plain Numba functions."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["LIMBS", "add_exactly", "channel_means"]

LIMBS = 9
"""64-bit words of 32 bits each, and room to carry, that hold a sum of float32 numbers in units of 2^-149."""

_LANES = 8  # sums side by side, as vector instructions have them: part of the result, since additions round


@numba.njit(nogil=True, cache=True)
def channel_means(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean of ``values[:, c, :]`` for each c, summed in double precision; float32[channels]."""
    outer, channels, inner = values.shape
    sums = np.zeros(channels, np.float64)
    if inner < _LANES:
        for i in range(outer):
            for j in range(inner):
                for c in range(channels):
                    sums[c] += values[i, c, j]
    else:
        lanes = np.empty(_LANES, np.float64)
        whole = inner // _LANES * _LANES
        for i in range(outer):
            for c in range(channels):
                row = values[i, c]
                lanes[:] = 0.0
                for j in range(0, whole, _LANES):
                    for k in range(_LANES):
                        lanes[k] += row[j + k]
                for j in range(whole, inner):
                    lanes[0] += row[j]
                for k in range(_LANES):
                    sums[c] += lanes[k]
    return (sums / (outer * inner)).astype(np.float32)


@numba.njit(nogil=True, cache=True)
def add_exactly(totals: NDArray[np.int64], bits: NDArray[np.int32]) -> None:
    """Add to ``sum(totals[c, i] * 2^(32 i))``, in units of 2^-149, the float32 number with the bits ``bits[c]``.

    Good for 2^31 numbers of any size and sign; no sum depends on their order.
    """
    for c in range(bits.size):
        exponent = np.int64(bits[c] >> 23) & 255
        significand = np.int64(bits[c] & 0x7FFFFF) | (np.int64(exponent > 0) << 23)
        shift = max(exponent - 1, 0)
        place = shift >> 5
        units = significand << (shift & 31)
        sign = np.int64(-1) if bits[c] < 0 else np.int64(1)
        totals[c, place] += sign * (units & 0xFFFFFFFF)
        totals[c, place + 1] += sign * (units >> 32)
