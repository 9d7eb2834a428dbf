"""What a model's output predicts, and how often two models and the labels agree."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbench.errors import DataError
from qbench.ir.op import Array
from qbench.report.entries import Flip

MOST_FLIPS = 256


@dataclass(frozen=True, slots=True)
class Score:
    """Counts that add up over chunks.

    Parameters
    ----------
    predictions
        How many there are; 0 where the output is no choice between classes.
    equal
        How many are the float model's.
    right_float, right
        How many of the float and of the quantized model's are the label.
    flips
        The first `MOST_FLIPS` samples whose prediction differs, where each has one prediction.
    """

    predictions: int = 0
    equal: int = 0
    right_float: int = 0
    right: int = 0
    flips: tuple[Flip, ...] = ()

    def __add__(self, other: Score) -> Score:
        return Score(
            self.predictions + other.predictions,
            self.equal + other.equal,
            self.right_float + other.right_float,
            self.right + other.right,
            (self.flips + other.flips)[:MOST_FLIPS],
        )

    def share(self, count: int) -> float | None:
        """A count as a fraction of the predictions."""
        return count / self.predictions if self.predictions else None


def predictions(output: Array) -> NDArray[np.int64] | None:
    """The class that each row (or each place of a row) is given; None where the output is no choice between classes.

    Classes lie along the one axis (but the first) that is longer than 1; where there are several, along axis 1 of an
    image (4 axes or more) and along the last axis of anything else. Integers are predictions already. Of equal scores
    the first counts.
    """
    if output.dtype.kind in "iub":
        return output.astype(np.int64)
    axis = _class_axis(output)
    return None if axis is None else np.argmax(output, axis=axis).astype(np.int64)


def _class_axis(output: Array) -> int | None:
    long = [axis for axis in range(1, output.ndim) if output.shape[axis] > 1]
    axis = long[0] if len(long) == 1 else 1 if output.ndim > 3 else output.ndim - 1
    return axis if axis in long else None


def score(reference: Array, output: Array, labels: NDArray[np.int64] | None, first: int = 0) -> Score:
    """Compare the predictions of one chunk, whose first sample has the index `first`.

    Raises
    ------
    DataError
        Labels that are not one per prediction, or no classes.
    """
    wanted, made = predictions(reference), predictions(output)
    if wanted is None or made is None:
        return Score()
    equal = int(np.count_nonzero(wanted == made))
    if labels is None:
        return Score(wanted.size, equal, flips=_flips(wanted, made, None, first))
    if labels.size != wanted.size:
        raise DataError(f"labels of shape {labels.shape} do not fit predictions of shape {wanted.shape}: one for each")
    axis = None if reference.dtype.kind in "iub" else _class_axis(reference)
    classes = None if axis is None else reference.shape[axis]
    if classes is not None and not 0 <= labels.min() <= labels.max() < classes:
        bad = labels[(labels < 0) | (labels >= classes)][0]
        raise DataError(f"label {bad} is no class of the model: it has {classes}, numbered from 0 to {classes - 1}")
    labels = labels.reshape(wanted.shape)
    right_float, right = (int(np.count_nonzero(guesses == labels)) for guesses in (wanted, made))
    return Score(wanted.size, equal, right_float, right, _flips(wanted, made, labels, first))


def _flips(
    wanted: NDArray[np.int64], made: NDArray[np.int64], labels: NDArray[np.int64] | None, first: int
) -> tuple[Flip, ...]:
    if not wanted.ndim or wanted.size != len(wanted):
        return ()
    rows: list[int] = np.flatnonzero(wanted.ravel() != made.ravel())[:MOST_FLIPS].tolist()
    floats, quantized = wanted.ravel().tolist(), made.ravel().tolist()
    right = [None] * len(wanted) if labels is None else [int(label) for label in labels.ravel()]
    return tuple(Flip(first + row, floats[row], quantized[row], right[row]) for row in rows)
