"""What a layer's windows see of its data: the rows of a matrix for each group, made a few groups at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbench.kernels.patches import LARGEST, patches_kernel

_ROOM = 2.0  # the rounded network's values may go beyond the float one's by as much

Floats = NDArray[np.float64]


def unit_of(largest: float) -> float:
    """The power of two that 15 bits count values in that are up to twice as large as the largest."""
    return 2.0 ** math.ceil(math.log2(_ROOM * max(largest, 1e-30) / LARGEST))


@dataclass(frozen=True, eq=False)
class Patches:
    """Windows on some places of an image, as whole numbers of 15 bits; zeros beyond the image.

    Parameters
    ----------
    data
        float32[samples, channels, height, width], in any order in memory.
    corners
        int64[places, 2]: row and column where each window begins, perhaps before the image.
    unit
        What is counted, a power of two.
    groups
        Of channels, which windows see apart.
    size, dilation
        Of a window.
    """

    data: NDArray[np.float32]
    corners: NDArray[np.int64]
    unit: float
    groups: int = 1
    size: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)

    @property
    def count(self) -> int:
        """How many windows there are for each group."""
        return len(self.data) * len(self.corners)

    @property
    def depth(self) -> int:
        """How many elements a window has."""
        return self.data.shape[1] // self.groups * self.size[0] * self.size[1]

    def put(self, first: int, rows: Floats, sums: Floats) -> None:
        """Set rows [groups, count, depth] of some groups from the first on; sums [groups, depth] grow by theirs.

        Both are columns of larger matrices, of one width.
        """
        data = self.data.astype(np.float32, copy=False)  # held until the kernel is done, which knows its address alone
        sizes = dict(zip(("samples", "channels", "height", "width"), data.shape, strict=True))
        windows = {"corners": self.corners, "places": len(self.corners), "window": self.size, "dilation": self.dilation}
        made = {"first": first, "groups": len(rows), "depth": data.shape[1] // self.groups}
        patches_kernel()(
            x=data.ctypes.data,
            x_stride=[step // data.itemsize for step in data.strides],
            factor=1 / self.unit,
            rows=rows.ctypes.data,
            sums=sums.ctypes.data,
            pitch=sums.strides[0] // sums.itemsize,
            **(sizes | windows | made),
        )
