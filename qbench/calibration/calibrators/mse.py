"""The least mean squared error of the very quantizer that will be used."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbench.calibration.curve import Floats, ThresholdCurve, best_of
from qbench.calibration.grid import Grid
from qbench.calibration.loss import Density
from qbench.calibration.statistics import Statistics
from qbench.kernels import grid_error

MEANING = "mean squared error"

_COARSE = 2.0 ** (np.arange(-8 * 12, 1) / 12)  # eight octaves below the largest value, twelve steps in each
_FINE = 2.0 ** (np.arange(-11, 12) / (12 * 12))  # then a twelfth of such a step around the best
_ROWS = 1024  # searched at a time: what they need stays near


@dataclass(frozen=True, slots=True)
class MeanSquaredError:
    """Threshold of least mean squared error, rounding and clipping together, on the grid of the dtype.

    The search is coarse (6 %), then fine (0.5 %) around the best. Of equal errors the largest threshold wins.
    Statistics give an estimate of the error; where all values are known, as the weights of a channel are, it is exact.
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

    def thresholds(self, rows: NDArray[np.float32], grid: Grid) -> Floats:
        """float64[rows]: the threshold for each row of values, all of which are given."""
        return np.concatenate([_thresholds(rows[i : i + _ROWS], grid) for i in range(0, len(rows), _ROWS)])


def squared_errors(density: Density, statistics: Statistics, grid: Grid, thresholds: Floats) -> Floats:
    """Mean squared error at each threshold."""
    return density.squared_errors(grid.each(statistics, thresholds)) if thresholds.size else np.zeros(0)


def _thresholds(rows: NDArray[np.float32], grid: Grid) -> Floats:
    lows, highs = rows.min(axis=1, keepdims=True).astype(np.float64), rows.max(axis=1, keepdims=True).astype(np.float64)
    largest = np.maximum(-lows, highs)

    def errors(thresholds: Floats) -> Floats:
        steps = grid.steps(np.maximum(lows, -thresholds), np.minimum(highs, thresholds))
        return grid_error.squared_errors(rows, *steps)

    coarse = _COARSE * largest
    found = errors(coarse)
    fine = np.minimum(_FINE * _largest_of_least(coarse, found), largest)
    return _largest_of_least(np.hstack([coarse, fine]), np.hstack([found, errors(fine)]))[:, 0]


def _largest_of_least(thresholds: Floats, errors: Floats) -> Floats:
    """float64[rows, 1]: of each row the threshold of least error, and the largest of several."""
    return np.where(errors == errors.min(axis=1, keepdims=True), thresholds, 0.0).max(axis=1, keepdims=True)
