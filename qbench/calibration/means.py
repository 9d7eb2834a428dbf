"""The mean of each channel, exact over samples: the sum is a whole number of the smallest float32."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbench.ir.op import Array
from qbench.kernels.means import LIMBS, add_exactly, channel_means

__all__ = ["ChannelMeans", "RunningMeans"]

_UNITS_PER_ONE = 149
"""2^-149 is the smallest positive float32; every other one is a multiple of it."""


@dataclass(frozen=True, slots=True)
class ChannelMeans:
    """Per channel the sum over samples of the sample's mean: integers, so that no order of the samples changes it.

    Parameters
    ----------
    totals
        One per channel, in units of 2^-149.
    samples
        How many samples were added up.
    """

    totals: tuple[int, ...]
    samples: int

    @classmethod
    def of(cls, sample: Array, axis: int) -> ChannelMeans:
        """One sample's means, rounded to float32, along the axis of its channels."""
        running = RunningMeans(axis)
        running.add(sample)
        return running.means()

    def merge(self, other: ChannelMeans) -> ChannelMeans:
        """Those of the samples of both."""
        totals = tuple(a + b for a, b in zip(self.totals, other.totals, strict=True))
        return ChannelMeans(totals, self.samples + other.samples)

    @property
    def values(self) -> NDArray[np.float64]:
        """The means."""
        unit = self.samples << _UNITS_PER_ONE
        return np.asarray([total / unit for total in self.totals], np.float64)


class RunningMeans:
    """`ChannelMeans` as they grow, sample by sample.

    Parameters
    ----------
    axis
        Of the channels.
    """

    def __init__(self, axis: int) -> None:
        self._axis, self._samples = axis, 0
        self._totals: NDArray[np.int64] = np.zeros((0, LIMBS), np.int64)

    def add(self, sample: Array) -> None:
        """Add one sample, of a float dtype and at least one element."""
        channels, last = sample.shape[self._axis], np.moveaxis(sample, self._axis, -1)
        if last.flags.c_contiguous:
            values = last.reshape(-1, channels, 1)
        else:
            outer, inner = math.prod(sample.shape[: self._axis]), math.prod(sample.shape[self._axis + 1 :])
            values = sample.reshape(outer, channels, inner)
        if not self._samples:
            self._totals = np.zeros((channels, LIMBS), np.int64)
        self._samples += 1
        means = channel_means(np.ascontiguousarray(values, np.float32))
        add_exactly(self._totals, means.view(np.int32))

    def means(self) -> ChannelMeans:
        """Those of the samples so far."""
        totals = tuple(sum(limb << (32 * i) for i, limb in enumerate(limbs)) for limbs in self._totals.tolist())
        return ChannelMeans(totals, self._samples)
