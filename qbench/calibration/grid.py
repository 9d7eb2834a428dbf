"""The integer grid that a threshold leads to: what every calibrator has to know about the quantizer."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbench.calibration.statistics import Statistics
from qbench.ir.dtypes import DType, integer_range
from qbench.ir.qparams import QParams
from qbench.quant.choose import from_range, from_ranges, next_powers_of_two, power_of_two, scales_and_zero_points

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grid:
    """The kind of qparams wanted; a threshold fixes the rest.

    Parameters
    ----------
    dtype
        Integer type.
    symmetric
        0.0 in the middle of the type.
    narrow
        Smallest integer unused.
    power_of_two
        Scales are raised to powers of two.
    """

    dtype: DType = "uint8"
    symmetric: bool = False
    narrow: bool = False
    power_of_two: bool = False

    @property
    def levels(self) -> int:
        """Number of integers of the dtype."""
        low, high = integer_range(self.dtype)
        return high - low + 1

    def qparams(self, statistics: Statistics, threshold: float) -> QParams:
        """qparams for ``[max(min, -threshold), min(max, threshold)]``, widened to include 0."""
        return self.of_range(max(statistics.min, -threshold), min(statistics.max, threshold))

    def of_range(self, low: float, high: float) -> QParams:
        """qparams for a range, which is widened to include 0 (and so is one that lies on one side of it)."""
        low, high = min(low, 0.0), max(high, 0.0)
        qparams = from_range(low, high, self.dtype, self.symmetric, self.narrow)
        return power_of_two(qparams) if self.power_of_two else qparams

    def each(self, statistics: Statistics, thresholds: Floats) -> QParams:
        """What `qparams` gives for each of several thresholds, along axis 0."""
        lows = np.minimum(np.maximum(statistics.min, -thresholds), 0.0).tolist()
        highs = np.maximum(np.minimum(statistics.max, thresholds), 0.0).tolist()
        qparams = from_ranges(lows, highs, self.dtype, self.symmetric, self.narrow)
        return power_of_two(qparams) if self.power_of_two else qparams

    def steps(self, lows: Floats, highs: Floats) -> tuple[Floats, Floats, Floats]:
        """The scale, the least and the greatest integer, both less the zero point, for each of several ranges.

        As `of_range` has them, for finite ranges in order, in arrays of their shape.
        """
        scales, zeros = scales_and_zero_points(lows, highs, self.dtype, self.symmetric, self.narrow)
        scales, (least, greatest) = scales.astype(np.float32).astype(np.float64), integer_range(self.dtype)
        if self.power_of_two:
            scales = next_powers_of_two(scales)
        return scales, (least - zeros).astype(np.float64), (greatest - zeros).astype(np.float64)
