"""A percentile of the absolute values: a fixed fraction of the data is given up."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from qbench.calibration.curve import ThresholdCurve
from qbench.calibration.edges import sides
from qbench.calibration.grid import Grid
from qbench.calibration.statistics import Statistics
from qbench.errors import CalibrationError


@dataclass(frozen=True, slots=True)
class Percentile:
    """Threshold = the lowest edge of a bin beyond which at most ``100 - percentile`` percent of the data lie.

    Parameters
    ----------
    percentile
        Above 0, at most 100; 100 is the same as max.
    """

    percentile: float = 99.99

    def __post_init__(self) -> None:
        if not 0 < self.percentile <= 100:
            raise CalibrationError(f"percentile {self.percentile} must be above 0 and at most 100")

    def curve(self, statistics: Statistics, grid: Grid, tensor: str = "") -> ThresholdCurve:
        """See `Calibrator`."""
        data = sides(statistics)
        beyond = statistics.count - np.cumsum(data.both)
        # as a decimal fraction: 100 - 99.99 in binary would give up one value more or less of 10,000
        allowed = math.floor(statistics.count * (1 - Fraction(repr(self.percentile)) / 100))
        best = data.edges[int(np.argmax(beyond <= allowed))]
        return ThresholdCurve("percentile", "fraction clipped", data.edges, beyond / statistics.count, float(best))
