"""How far a quantized value is from the float model's: sums that add up over chunks of data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qbench.ir.op import Array
from qbench.ir.qparams import QParams

__all__ = ["Deviation", "clipped", "decibels", "deviation"]


_BLOCK = 1 << 15  # elements that stay in the processor's cache


@dataclass(frozen=True, slots=True)
class Deviation:
    """Sums over elements.

    Parameters
    ----------
    signal, noise
        Sums of squares of the float model's values and of the differences to them.
    clipped, count
        Elements outside of the encoding's range, and all of them.
    """

    signal: float = 0.0
    noise: float = 0.0
    clipped: int = 0
    count: int = 0

    def __add__(self, other: Deviation) -> Deviation:
        return Deviation(
            self.signal + other.signal,
            self.noise + other.noise,
            self.clipped + other.clipped,
            self.count + other.count,
        )

    @property
    def sqnr_db(self) -> float | None:
        """Signal to noise in decibels; infinite without noise, None where a sum is not finite or there is no data."""
        return decibels(self.signal, self.noise) if self.count else None

    @property
    def clipped_fraction(self) -> float:
        """Share of the elements that are clipped."""
        return self.clipped / max(1, self.count)


def deviation(reference: Array, value: Array, qparams: QParams | None = None) -> Deviation:
    """Compare two arrays of reals of one shape, float32 or narrower; `qparams` are those of `value`'s integers."""
    signal = noise = 0.0
    flat, other = reference.reshape(-1), value.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow makes the sum infinite, which says so
        for start in range(0, flat.size, _BLOCK):
            block = flat[start : start + _BLOCK].astype(np.float64)
            signal += float(np.square(block).sum())
            block -= other[start : start + _BLOCK]
            noise += float(np.square(block).sum())
    return Deviation(signal, noise, clipped(reference, qparams) if qparams else 0, reference.size)


def clipped(reference: Array, qparams: QParams) -> int:
    """How many elements lie further out than the outermost integers reach (half a step beyond them)."""
    scale = qparams.scale_array(reference.ndim).astype(np.float64)
    zero_point = qparams.zero_point_array(reference.ndim)
    low, high = (qparams.qmin - zero_point - 0.5) * scale, (qparams.qmax - zero_point + 0.5) * scale
    return int(np.count_nonzero(reference < low) + np.count_nonzero(reference > high))


def decibels(signal: float, noise: float) -> float | None:
    """``10 log10(signal / noise)``: infinite without noise, minus infinite without signal, None where not a number."""
    if not (math.isfinite(signal) and math.isfinite(noise)):
        return None
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal > 0 else -math.inf
