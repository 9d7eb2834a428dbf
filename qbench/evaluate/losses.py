"""What each output loses, and in which samples it loses most."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field, replace

import numpy as np

from qbench.evaluate.columns import Columns
from qbench.evaluate.judging import Said
from qbench.evaluate.measure import LOST_DB, decibels
from qbench.ir.op import Array
from qbench.report.entries import OutputLoss, SampleLoss

MOST_SAMPLES = 16
_HIDDEN_DB = 3.0
"""So much better an output looks where all that it loses is how it varies."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Sums that add up over chunks.

    Parameters
    ----------
    signal, noise, power
        Sums of squares of the float model's values, of the differences to them, and of the quantized model's values.
    worst
        The samples with the most noise for their signal, the worst first.
    said
        What the output says, where that is more than numbers.
    columns
        Sums of each number, where a sample has few.
    """

    signal: float = 0.0
    noise: float = 0.0
    power: float = 0.0
    worst: tuple[SampleLoss, ...] = ()
    said: Said = field(default_factory=Said)
    columns: Columns = field(default_factory=Columns)

    def __add__(self, other: Losses) -> Losses:
        sums = self.signal + other.signal, self.noise + other.noise, self.power + other.power
        worst = heapq.nsmallest(MOST_SAMPLES, (*self.worst, *other.worst), _order)
        return Losses(*sums, tuple(worst), self.said + other.said, self.columns + other.columns)

    def of(self, name: str) -> OutputLoss:
        """The report's entry of the output of that name."""
        size = math.sqrt(self.signal * self.power)
        cosine = (self.signal + self.power - self.noise) / (2 * size) if size > 0 and math.isfinite(size) else None
        sqnr_db, varies_db = decibels(self.signal, self.noise), self.columns.sqnr_db
        logarithms = self.said.logarithms.sqnr_db
        varies_db = logarithms if varies_db is None else min(varies_db, math.inf if logarithms is None else logarithms)
        is_hidden = sqnr_db is not None and varies_db is not None and varies_db < min(sqnr_db - _HIDDEN_DB, LOST_DB)
        return OutputLoss(
            name=name,
            sqnr_db=sqnr_db,
            cosine=cosine and min(max(cosine, -1.0), 1.0),
            worst=self.worst,
            found_db=self.said.found_db,
            texts_alike=self.said.texts_alike,
            nats_lost=self.said.nats_lost,
            varies_db=varies_db if is_hidden and replace(self.said, logarithms=Columns()) == Said() else None,
        )


def _order(loss: SampleLoss) -> tuple[float, int]:
    return loss.sqnr_db, loss.sample


def losses(reference: Array, value: Array, start: int, stop: int) -> Losses:
    """Compare an output of the samples from `start` to `stop`.

    Parameters
    ----------
    reference
        Real numbers of the float model, one sample after the other along axis 0, or with another meaning of that axis
        where there is one sample.
    value
        The quantized model's, of the same shape.
    """
    rows = stop - start if reference.shape and reference.shape[0] % max(stop - start, 1) == 0 else 1
    x, y = (array.reshape(rows, -1).astype(np.float64) for array in (reference, value))
    with np.errstate(invalid="ignore", over="ignore"):  # infinities of a mask: nothing is said of such an output
        signal, noise, power = (np.einsum("ij,ij->i", a, a) for a in (x, x - y, y))
    each = (decibels(s, n) for s, n in zip(signal.tolist(), noise.tolist(), strict=True))
    worst = [SampleLoss(start + row, db) for row, db in enumerate(each) if db is not None and db < math.inf]
    sums = float(signal.sum()), float(noise.sum()), float(power.sum())
    return Losses(*sums, columns=Columns.of(reference, value)) + Losses(worst=tuple(worst))
