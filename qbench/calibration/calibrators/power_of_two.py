"""Scales that are powers of two, so that requantizing is a shift."""

from dataclasses import dataclass, replace

import numpy as np

from qbench.calibration.calibrators.mse import MEANING, squared_errors
from qbench.calibration.curve import ThresholdCurve
from qbench.calibration.grid import Grid
from qbench.calibration.loss import Density
from qbench.calibration.statistics import Statistics
from qbench.quant.choose import next_power_of_two

_OCTAVES = 8


@dataclass(frozen=True, slots=True)
class PowerOfTwo:
    """TVM's rule: the range's width goes up to a power of two, and the scale is its ``2^bits``-th part.

    For symmetric int8 that is ``scale = 2^ceil(log2 max(abs(x))) / 128``. The curve shows the mean squared error of
    smaller powers of two beside it.
    """

    def curve(self, statistics: Statistics, grid: Grid, tensor: str = "") -> ThresholdCurve:
        """See `Calibrator`; the curve carries the qparams, whose scale is the power of two."""
        grid = replace(grid, power_of_two=True)
        low, high = min(statistics.min, 0.0), max(statistics.max, 0.0)
        smaller = 0.0 if grid.symmetric else min(-low, high)  # the side that a threshold reaches first
        width = 2 * statistics.abs_max if grid.symmetric else high - low
        if not width:
            qparams = grid.qparams(statistics, 0.0)
            return ThresholdCurve("power_of_two", MEANING, np.zeros(1), np.zeros(1), 0.0, qparams)
        steps = grid.levels - 2 if grid.symmetric else grid.levels - 1  # that a scale is the range's width over
        largest = next_power_of_two(width) * (steps / grid.levels)
        widths = largest * 2.0 ** np.arange(-_OCTAVES, 1)
        # the threshold t that leaves a range of that width: 2t, or t on the one side and all of the other
        thresholds = widths / 2 if grid.symmetric else np.maximum(widths / 2, widths - smaller)
        errors = squared_errors(Density.of(statistics), statistics, grid, thresholds)
        best = float(thresholds[-1])
        return ThresholdCurve("power_of_two", MEANING, thresholds, errors, best, grid.qparams(statistics, best))
