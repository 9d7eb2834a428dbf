"""Second moments of a layer's inputs, in the float network and in the rounded one; exact, so that they merge.

Inputs are taken as whole numbers of 15 bits times a power of two. Products of two of them stay below 2^30, and sums of
up to 2^22 products below 2^52: each is a whole number that float64 holds exactly, in whatever order it is added up. So
any split of the data gives the same bits, while BLAS does the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbench.calibration.patches import Patches

_MOST = 2**22
_AT_ONCE = 1 << 18  # elements of groups whose rows are made and used while they are in the processor's cache

Floats = NDArray[np.float64]


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
    def of(cls, exact: Sequence[Patches], rounded: Patches) -> Moments:
        """Those of what windows see in both networks, side by side in the float one; at most 2^22 windows."""
        groups, count, depth = rounded.groups, rounded.count, rounded.depth
        if count > _MOST:
            raise ValueError(f"{count} inputs at once are more than {_MOST}, whose sums are exact")
        parts = [*exact, rounded]
        ends = np.cumsum([part.depth for part in parts]).tolist()
        beyond, wide = ends[-2:]
        sums, some = np.zeros((groups, wide)), max(1, _AT_ONCE // (count * wide))
        second, cross = np.empty((groups, depth, depth)), np.empty((groups, beyond, depth))
        buffer = np.empty((min(some, groups), count, wide))
        for first in range(0, groups, some):
            at = slice(first, first + some)
            rows = buffer[: len(sums[at])]
            for part, end in zip(parts, ends, strict=True):
                columns = slice(end - part.depth, end)
                part.put(first, rows[:, :, columns], sums[at, columns])
            f, q = rows[:, :, :beyond], rows[:, :, beyond:]
            np.matmul(q.transpose(0, 2, 1), q, out=second[at])
            np.matmul(f.transpose(0, 2, 1), q, out=cross[at])
        return cls(second, cross, sums[:, :beyond], sums[:, beyond:], count, rounded.unit)

    @property
    def are_numbers(self) -> bool:
        """Whether no input was NaN or infinite."""
        return bool(np.isfinite(self.second).all() and np.isfinite(self.cross).all())

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
