"""What a calibrator gives: every threshold that it tried, what each would cost, and its choice."""

from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from qbench.calibration.grid import Grid
from qbench.calibration.statistics import Statistics
from qbench.ir.qparams import QParams

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class ThresholdCurve:
    """A calibrator's whole view of one tensor, so that a person can see why it chose as it did.

    Parameters
    ----------
    calibrator
        Its name.
    meaning
        What `divergence` is, for an axis label.
    candidates
        float64[n], n >= 1, ascending thresholds; t clips to ``[max(min, -t), min(max, t)]``.
    divergence
        float64[n]: what each candidate costs; may be infinite.
    best
        The threshold chosen.
    qparams
        Where the calibrator decides more than a threshold: the encoding itself.
    """

    calibrator: str
    meaning: str
    candidates: Floats = field(repr=False)
    divergence: Floats = field(repr=False)
    best: float
    qparams: QParams | None = None

    def __post_init__(self) -> None:
        self.candidates.flags.writeable = False
        self.divergence.flags.writeable = False

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ThresholdCurve)
            and (self.calibrator, self.meaning, self.best, self.qparams)
            == (other.calibrator, other.meaning, other.best, other.qparams)
            and np.array_equal(self.candidates, other.candidates)
            and np.array_equal(self.divergence, other.divergence)
        )

    def __hash__(self) -> int:
        return hash((self.calibrator, self.best, self.candidates.tobytes(), self.divergence.tobytes()))


class Calibrator(Protocol):
    """Decides thresholds. A frozen dataclass whose fields are its options."""

    def curve(self, statistics: Statistics, grid: Grid, tensor: str = "") -> ThresholdCurve:
        """The curve of one tensor.

        Parameters
        ----------
        statistics
            Of the tensor.
        grid
            What kind of qparams the threshold is for.
        tensor
            Its name, for messages and for the user's own callables.
        """
        ...


def best_of(candidates: Floats, divergence: Floats, tie: Literal["first", "last"] = "last") -> float:
    """The candidate of least divergence; of several, the last one clips least."""
    index = np.argmin(divergence) if tie == "first" else len(divergence) - 1 - np.argmin(divergence[::-1])
    return float(candidates[index])
