"""The user's own calibrator: a callable, known to configs by the name that it was registered under."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from qbench.calibration.calibrators.mse import MEANING
from qbench.calibration.curve import ThresholdCurve
from qbench.calibration.grid import Grid
from qbench.calibration.loss import Density
from qbench.calibration.statistics import Statistics
from qbench.errors import CalibrationError, nearest, shown
from qbench.ir.qparams import QParams

Decide = Callable[[str, Statistics], Any]
"""``(tensor name, statistics) -> threshold or QParams``; what it gives is checked."""

_known: dict[str, Decide] = {}


def register_calibrator(name: str, decide: Decide) -> None:
    """Make a callable of your own usable in configs, as ``{"name": "registered", "callable": name}``.

    Parameters
    ----------
    name
        What configs call it. A name that is registered again means the new callable from then on.
    decide
        Called with a tensor's name and its statistics; returns a threshold t, which clips to
        ``[max(min, -t), min(max, t)]``, or the whole per-tensor QParams.
    """
    if not name:
        raise CalibrationError("a registered calibrator needs a name")
    if not callable(decide):
        raise CalibrationError(f"calibrator {shown(name)} must be callable, not {type(decide).__name__}")
    _known[name] = decide


@dataclass(frozen=True, slots=True)
class Registered:
    """Looks the callable up when it is asked for a curve, so that a config can be read before it is registered."""

    callable: str

    def curve(self, statistics: Statistics, grid: Grid, tensor: str = "") -> ThresholdCurve:
        """See `Calibrator`; the one candidate is the callable's."""
        decision = self._decision(tensor, statistics)
        if isinstance(decision, QParams):
            threshold, qparams = _reach(decision), decision
        else:
            threshold, qparams = decision, None
        used = qparams or grid.qparams(statistics, threshold)
        error = Density.of(statistics).squared_errors(used)
        return ThresholdCurve(self.callable, MEANING, np.array([threshold]), error, threshold, qparams)

    def _decision(self, tensor: str, statistics: Statistics) -> float | QParams:
        if self.callable not in _known:
            raise CalibrationError(
                f"no calibrator is registered as {shown(self.callable)}{nearest(self.callable, _known)}; "
                f"call qbench.register_calibrator({self.callable!r}, function) first"
            )
        asked = f"calibrator {shown(self.callable)}, asked about tensor {shown(tensor)}"
        try:
            decision = _known[self.callable](tensor, statistics)
        except Exception as error:
            error.add_note(asked)
            raise
        if isinstance(decision, QParams):
            if decision.axis is not None:
                raise CalibrationError(f"{asked}, gave qparams along an axis; a tensor's statistics are of all of it")
            return decision
        if isinstance(decision, bool) or not isinstance(decision, Real):
            raise CalibrationError(f"{asked}, gave {type(decision).__name__}; it must be a threshold or QParams")
        threshold = float(decision)
        if not (math.isfinite(threshold) and threshold > 0):
            raise CalibrationError(f"{asked}, gave {threshold}; a threshold is positive and finite")
        return threshold


def _reach(qparams: QParams) -> float:
    """The largest absolute value that these qparams can stand for."""
    low, high = qparams.ranges[0]
    return max(-low, high)
