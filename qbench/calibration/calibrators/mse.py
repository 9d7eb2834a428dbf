"""The least mean squared error of the very quantizer that will be used."""

from dataclasses import dataclass

import numpy as np

from qbench.calibration.curve import Floats, ThresholdCurve, best_of
from qbench.calibration.grid import Grid
from qbench.calibration.loss import Density
from qbench.calibration.statistics import Statistics

MEANING = "mean squared error"

_COARSE = 2.0 ** (np.arange(-8 * 12, 1) / 12)  # eight octaves below the largest value, twelve steps in each
_FINE = 2.0 ** (np.arange(-11, 12) / (12 * 12))  # then a twelfth of such a step around the best


@dataclass(frozen=True, slots=True)
class MeanSquaredError:
    """Threshold of least mean squared error, rounding and clipping together, on the grid of the dtype.

    The search is coarse (6 %), then fine (0.5 %) around the best. Of equal errors the largest threshold wins.
    """

    def curve(self, statistics: Statistics, grid: Grid, tensor: str = "") -> ThresholdCurve:
        """See `Calibrator`."""
        density, largest = Density.of(statistics), statistics.abs_max
        if not largest:
            return ThresholdCurve("mse", MEANING, np.zeros(1), np.zeros(1), 0.0)
        coarse = _COARSE * largest
        errors = squared_errors(density, statistics, grid, coarse)
        fine = _FINE * best_of(coarse, errors)
        fine = fine[(fine < largest) & ~np.isin(fine, coarse)]
        candidates = np.concatenate([coarse, fine])
        order = np.argsort(candidates, kind="stable")
        errors = np.concatenate([errors, squared_errors(density, statistics, grid, fine)])
        candidates, errors = candidates[order], errors[order]
        return ThresholdCurve("mse", MEANING, candidates, errors, best_of(candidates, errors))


def squared_errors(density: Density, statistics: Statistics, grid: Grid, thresholds: Floats) -> Floats:
    """Mean squared error at each threshold."""
    return density.squared_errors(grid.each(statistics, thresholds)) if thresholds.size else np.zeros(0)
