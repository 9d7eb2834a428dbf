"""One scale for every tensor."""

from dataclasses import dataclass

import numpy as np

from qbench.calibration.calibrators.mse import MEANING
from qbench.calibration.curve import ThresholdCurve
from qbench.calibration.grid import Grid
from qbench.calibration.loss import Density
from qbench.calibration.statistics import Statistics
from qbench.errors import CalibrationError
from qbench.ir.dtypes import integer_range
from qbench.ir.qparams import QParams


@dataclass(frozen=True, slots=True)
class GlobalScale:
    """TVM's global scale: ``scale = threshold / 2^(bits - 1)`` whatever the data; 8 / 128 = 1/16 by default.

    The zero point is in the middle of the dtype, or for an asymmetric grid at its lower end where no data is negative.
    """

    threshold: float = 8.0

    def __post_init__(self) -> None:
        if not 0 < self.threshold < float("inf"):
            raise CalibrationError(f"global scale's threshold {self.threshold} must be positive and finite")

    def curve(self, statistics: Statistics, grid: Grid, tensor: str = "") -> ThresholdCurve:
        """See `Calibrator`; there is one candidate, and the curve carries the qparams."""
        lowest, _ = integer_range(grid.dtype)
        middle = lowest + grid.levels // 2
        one_sided = not grid.symmetric and statistics.min >= 0
        qparams = QParams(self.threshold / (grid.levels // 2), lowest if one_sided else middle, grid.dtype)
        error = Density.of(statistics).squared_errors(qparams)
        return ThresholdCurve(
            "global_scale", MEANING, np.array([self.threshold]), error, float(self.threshold), qparams
        )
