"""The curve of any tensor by any calibrator: what the workbench draws, and what resolve takes its thresholds from."""

from functools import lru_cache

from qbench.calibration.calibrators import Registered
from qbench.calibration.curve import Calibrator, ThresholdCurve
from qbench.calibration.grid import Grid
from qbench.calibration.statistics import Statistics


def threshold_curve(statistics: Statistics, calibrator: Calibrator, grid: Grid, tensor: str = "") -> ThresholdCurve:
    """What a calibrator makes of a tensor.

    The last curves are remembered, so that a config that is changed in one place costs little to resolve again; those
    of the user's own callables are not, since what they do may change.
    """
    if isinstance(calibrator, Registered):
        return calibrator.curve(statistics, grid, tensor)
    return _remembered(statistics, calibrator, grid)


@lru_cache(maxsize=1024)
def _remembered(statistics: Statistics, calibrator: Calibrator, grid: Grid) -> ThresholdCurve:
    return calibrator.curve(statistics, grid)
