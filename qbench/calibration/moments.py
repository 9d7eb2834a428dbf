"""Second moments of a layer's inputs, in the float network and in the rounded one; exact, so that they merge.

Inputs are taken as whole numbers of 15 bits times a power of two. Products of two of them stay below 2^30, and sums of
up to 2^22 products below 2^52: each is a whole number that float64 holds exactly, in whatever order it is added up. So
any split of the data gives the same bits, while BLAS does the work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_LARGEST = 2**15 - 1
_MOST = 2**22
_ROOM = 2.0  # the rounded network's values may go beyond the float one's by as much

Floats = NDArray[np.float64]


def unit_of(largest: float) -> float:
    """The power of two that 15 bits count values in that are up to twice as large as the largest."""
    return 2.0 ** math.ceil(math.log2(_ROOM * max(largest, 1e-30) / _LARGEST))


@dataclass(frozen=True)
class Moments:
    """Sums over samples, in units of the inputs' unit; all arrays hold whole numbers.

    Parameters
    ----------
    second
        float64[groups, depth, depth]: of x_q x_q', inputs of the rounded network.
    cross
        float64[groups, depth, depth]: of x_f x_q', x_f being inputs of the float network.
    sum_exact, sum_rounded
        float64[groups, depth]: of x_f and x_q.
    count
        How many inputs were added up.
    unit
        Of the inputs.
    """

    second: Floats
    cross: Floats
    sum_exact: Floats
    sum_rounded: Floats
    count: int
    unit: float

    @classmethod
    def of(cls, exact: NDArray[np.float32], rounded: NDArray[np.float32], unit: float) -> Moments:
        """Those of float32[groups, inputs, depth] of both networks; at most 2^22 inputs."""
        f, q = (np.clip(np.rint(x.astype(np.float64) / unit), -_LARGEST, _LARGEST) for x in (exact, rounded))
        transposed = f.transpose(0, 2, 1)
        if f.shape[1] > _MOST:
            raise ValueError(f"{f.shape[1]} inputs at once are more than {_MOST}, whose sums are exact")
        return cls(q.transpose(0, 2, 1) @ q, transposed @ q, f.sum(axis=1), q.sum(axis=1), f.shape[1], unit)

    def merge(self, other: Moments) -> Moments:
        """Those of all inputs of both."""
        return Moments(
            self.second + other.second,
            self.cross + other.cross,
            self.sum_exact + other.sum_exact,
            self.sum_rounded + other.sum_rounded,
            self.count + other.count,
            self.unit,
        )

    @property
    def means(self) -> tuple[Floats, Floats]:
        """Of x_f and of x_q."""
        return self.sum_exact / self.count * self.unit, self.sum_rounded / self.count * self.unit

    def about(self, centre: bool) -> tuple[Floats, Floats]:
        """Means of x_q x_q' and x_f x_q', about their own means where a bias takes care of those, else about zero."""
        f, q = self.sum_exact / self.count * centre, self.sum_rounded / self.count * centre
        square = self.unit**2
        second = (self.second / self.count - q[:, :, None] * q[:, None]) * square
        return second, (self.cross / self.count - f[:, :, None] * q[:, None]) * square
