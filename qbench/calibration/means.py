"""The mean of each channel, exact over samples: the sum is a whole number of the smallest float32."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbench.ir.op import Array
from qbench.runtime.tallies import Tally

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
        found = Tally(axis, sample.shape[axis])
        found.add(sample)
        return cls.taken(found)

    @classmethod
    def taken(cls, found: Tally) -> ChannelMeans:
        """Those of all that was counted."""
        totals = tuple(sum(limb << (32 * i) for i, limb in enumerate(limbs)) for limbs in found.totals.tolist())
        return cls(totals, found.samples)

    def merge(self, other: ChannelMeans) -> ChannelMeans:
        """Those of the samples of both."""
        totals = tuple(a + b for a, b in zip(self.totals, other.totals, strict=True))
        return ChannelMeans(totals, self.samples + other.samples)

    @property
    def values(self) -> NDArray[np.float64]:
        """The means."""
        unit = self.samples << _UNITS_PER_ONE
        return np.asarray([total / unit for total in self.totals], np.float64)
