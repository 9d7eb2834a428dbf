"""What each output loses, and in which samples it loses most."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np

from qbench.evaluate.measure import decibels
from qbench.ir.op import Array
from qbench.ir.qparams import QParams
from qbench.quant.arithmetic import dequantize
from qbench.report.entries import OutputLoss, SampleLoss

MOST_SAMPLES = 16


@dataclass(frozen=True, slots=True)
class Losses:
    """Sums that add up over chunks.

    Parameters
    ----------
    signal, noise, power
        Sums of squares of the float model's values, of the differences to them, and of the quantized model's values.
    worst
        The samples with the most noise for their signal, the worst first.
    """

    signal: float = 0.0
    noise: float = 0.0
    power: float = 0.0
    worst: tuple[SampleLoss, ...] = ()

    def __add__(self, other: Losses) -> Losses:
        sums = self.signal + other.signal, self.noise + other.noise, self.power + other.power
        return Losses(*sums, tuple(heapq.nsmallest(MOST_SAMPLES, (*self.worst, *other.worst), _order)))

    def of(self, name: str) -> OutputLoss:
        """The report's entry of the output of that name."""
        size = math.sqrt(self.signal * self.power)
        cosine = (self.signal + self.power - self.noise) / (2 * size) if size > 0 and math.isfinite(size) else None
        sqnr_db = decibels(self.signal, self.noise)
        return OutputLoss(name=name, sqnr_db=sqnr_db, cosine=cosine and min(max(cosine, -1.0), 1.0), worst=self.worst)


def _order(loss: SampleLoss) -> tuple[float, int]:
    return loss.sqnr_db, loss.sample


def losses(reference: Array, value: Array, integers: QParams | None, start: int, stop: int) -> Losses:
    """Compare an output of the samples from `start` to `stop`.

    Parameters
    ----------
    reference
        Real numbers of the float model, one sample after the other along axis 0, or with another meaning of that axis
        where there is one sample.
    value
        The quantized model's of the same shape, or integers with the qparams `integers`.
    """
    real = value if integers is None else dequantize(value, integers)
    rows = stop - start if reference.shape and reference.shape[0] % max(stop - start, 1) == 0 else 1
    x, y = (array.reshape(rows, -1).astype(np.float64) for array in (reference, real))
    with np.errstate(invalid="ignore", over="ignore"):  # infinities of a mask: nothing is said of such an output
        signal, noise, power = (np.einsum("ij,ij->i", a, a) for a in (x, x - y, y))
    each = (decibels(s, n) for s, n in zip(signal.tolist(), noise.tolist(), strict=True))
    worst = [SampleLoss(start + row, db) for row, db in enumerate(each) if db is not None and db < math.inf]
    return Losses(float(signal.sum()), float(noise.sum()), float(power.sum())) + Losses(worst=tuple(worst))
