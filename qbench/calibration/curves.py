"""The curve of any tensor by any calibrator: what the workbench draws, and what resolve takes its thresholds from."""

from weakref import WeakKeyDictionary

from qbench.calibration.calibrators import Registered
from qbench.calibration.curve import Calibrator, ThresholdCurve
from qbench.calibration.grid import Grid
from qbench.calibration.statistics import Statistics

_MANY = 32
_known = WeakKeyDictionary[Statistics, dict[tuple[Calibrator, Grid], ThresholdCurve]]()
"""The last curves of each tensor, for as long as its statistics are there."""


def threshold_curve(statistics: Statistics, calibrator: Calibrator, grid: Grid, tensor: str = "") -> ThresholdCurve:
    """What a calibrator makes of a tensor.

    The last curves are remembered, so that a config that is changed in one place costs little to resolve again; those
    of the user's own callables are not, since what they do may change.
    """
    if isinstance(calibrator, Registered):
        return calibrator.curve(statistics, grid, tensor)
    known = _known.setdefault(statistics, {})
    found = known.get((calibrator, grid))
    if found is None:
        if len(known) >= _MANY:
            known.clear()
        found = known[calibrator, grid] = calibrator.curve(statistics, grid)
    return found
