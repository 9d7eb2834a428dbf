"""The largest absolute value: nothing is clipped."""

from dataclasses import dataclass

from qbench.calibration.curve import ThresholdCurve
from qbench.calibration.edges import sides
from qbench.calibration.grid import Grid
from qbench.calibration.statistics import Statistics


@dataclass(frozen=True, slots=True)
class Max:
    """Threshold = largest absolute value. The curve is what clipping would cost the largest value."""

    def curve(self, statistics: Statistics, grid: Grid, tensor: str = "") -> ThresholdCurve:
        """See `Calibrator`."""
        candidates = sides(statistics).edges
        return ThresholdCurve(
            "max", "largest clipping error", candidates, statistics.abs_max - candidates, statistics.abs_max
        )
