"""What has been counted of a value over many runs, by kernels within a program or array by array."""

import math

import numpy as np
from numpy.typing import NDArray

from qbench.ir.op import Array
from qbench.kernels.tally import LIMBS, OF_ZEROS, TALLY, means_kernel, tally_kernel
from qbench.runtime.memory import zeros

_MANY = 1 << 30  # elements counted at a time, in 32 bits


class Tally:
    """Minimum, maximum, zeros and histogram of all values of one name, and means of its channels; see `TALLY`.

    Parameters
    ----------
    axis, channels
        Where the channels are of which means are wanted, and how many; None: nowhere.
    floor
        What is not above it counts nowhere: what a mask hides.
    """

    def __init__(self, axis: int | None = None, channels: int = 0, floor: float = -math.inf) -> None:
        self.axis, self.samples = axis, 0
        self.found: NDArray[np.void] = zeros((1,), TALLY)
        self.found["low"], self.found["high"], self.found["exponent"] = 2**31, -(2**31), OF_ZEROS
        self.found["floor"] = ~int(np.float32(-floor).view(np.int32))  # the key of a number below zero
        self.totals: NDArray[np.int64] = zeros((channels, LIMBS), np.int64)

    def __getitem__(self, field: str) -> int:
        return int(self.found[field][0])

    @property
    def counts(self) -> NDArray[np.int64]:
        """The histogram."""
        return self.found["counts"][0]

    def add(self, array: Array) -> bool:
        """Count one sample, of a float dtype; False, and nothing is counted, where it holds NaN or is empty."""
        if not array.size:
            return False
        bad, flat = self["bad"], np.asarray(array, np.float32).ravel(order="K")  # as they lie in memory
        for start in range(0, flat.size, _MANY):
            part = flat[start : start + _MANY]
            tally_kernel()(x=part, count=part.size, found=self.found)
        if self["bad"] > bad:
            return False
        self.samples += 1
        if self.axis is not None:
            channels, last = array.shape[self.axis], np.moveaxis(array, self.axis, -1)
            outer, inner = math.prod(array.shape[: self.axis]), math.prod(array.shape[self.axis + 1 :])
            outer, inner, values = (outer * inner, 1, last) if last.flags.c_contiguous else (outer, inner, array)
            x = np.ascontiguousarray(values, np.float32)
            means_kernel()(x=x, outer=outer, channels=channels, inner=inner, totals=self.totals)
        return True
