"""What quantizing a tensor costs, estimated from its histogram.

The data of a bin counts as spread evenly over it, except for what is known better: zeros are zeros, and the outermost
bins end at the minimum and the maximum. The mean squared error is then an integral with a closed form: where x is
quantized to ``k s`` with ``k = clip(round(x / s), kmin, kmax)``, an antiderivative of ``(x - k s)**2`` is
``k s**3 / 12 + (x - k s)**3 / 3``, over steps and saturation alike. One evaluation per edge of a bin is all it takes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbench.calibration.statistics import Statistics
from qbench.errors import CalibrationError
from qbench.ir.qparams import QParams
from qbench.kernels.grid_error import integrated_errors
from qbench.kernels.tally import BINS

Floats = NDArray[np.float64]
Numbers = float | Floats


@dataclass(frozen=True, slots=True)
class Loss:
    """What one choice of qparams does to one tensor; all of it estimated from the histogram.

    Parameters
    ----------
    clipped
        Fraction of the values that saturate: more than half a step outside of the grid.
    clipping, rounding
        The mean squared error (over all values) that comes from those that saturate, and from the others.
    signal
        Mean square of the values.
    """

    clipped: float
    clipping: float
    rounding: float
    signal: float

    @property
    def error(self) -> float:
        """Mean squared error."""
        return self.clipping + self.rounding

    @property
    def sqnr_db(self) -> float:
        """Signal to quantization noise in dB; infinite where there is no noise."""
        if self.error <= 0:
            return float("inf")
        return float(10 * np.log10(self.signal / self.error)) if self.signal else float("-inf")


def loss(statistics: Statistics, qparams: QParams) -> Loss:
    """What quantizing a tensor with these per-tensor qparams costs; see the module's text for how it is estimated."""
    return Density.of(statistics).loss(qparams)


@dataclass(frozen=True, slots=True)
class Density:
    """A histogram as a piecewise constant density, beside the values whose place is known exactly.

    Parameters
    ----------
    edges, jumps
        Where the density jumps, and by how much; the data is ``-sum(edges * jumps)`` of the whole.
    values, shares
        Single values and the fraction of the data that each of them makes up.
    """

    edges: Floats
    jumps: Floats
    values: Floats
    shares: Floats

    @classmethod
    def of(cls, statistics: Statistics) -> Density:
        """The density of a tensor's data, from its statistics."""
        counts = statistics.counts.copy()
        counts[BINS] -= statistics.zeros
        bins = np.flatnonzero(counts)
        low = np.maximum((bins - BINS) * statistics.bin_width, statistics.min)
        high = np.minimum((bins - BINS + 1) * statistics.bin_width, statistics.max)
        share = counts[bins] / statistics.count
        wide = high > low
        density = share[wide] / (high[wide] - low[wide])
        edges, place = np.unique(np.concatenate([low[wide], high[wide]]), return_inverse=True)
        jumps = np.bincount(place, np.concatenate([density, -density]), minlength=len(edges))
        return cls(
            edges,
            jumps.astype(np.float64),
            np.append(low[~wide], 0.0),
            np.append(share[~wide], statistics.zeros / statistics.count),
        )

    def squared_errors(self, choices: QParams) -> Floats:
        """Mean squared error of quantizing the data with each scale and zero point of some qparams."""
        scales, zeros = np.array(choices.scales), np.array(choices.zero_points)
        grids = scales, choices.qmin - zeros, choices.qmax - zeros
        errors = integrated_errors(self.edges, self.jumps, *grids)
        for value, share in zip(self.values, self.shares, strict=True):
            errors += share * _squared(value, *grids)
        return np.maximum(errors, 0.0)  # a sum may come to -1e-30 where nothing is lost

    def loss(self, qparams: QParams) -> Loss:
        """Clipped fraction, errors and signal of quantizing the data with per-tensor qparams."""
        scale, low, high = _grid(qparams)
        bounds = (low - 0.5) * scale, (high + 0.5) * scale
        edges, inside = np.clip(self.edges, *bounds), (self.values >= bounds[0]) & (self.values <= bounds[1])
        kept = _integrated(edges, scale, low, high)
        whole = _integrated(self.edges, scale, low, high)
        squared = _squared(self.values, scale, low, high)
        return Loss(
            clipped=float(self._mean(self.edges - edges, (~inside).astype(np.float64))),
            clipping=float(self._mean(whole - kept, squared * ~inside)),
            rounding=max(float(self._mean(kept, squared * inside)), 0.0),
            signal=float(self._mean(self.edges**3 / 3, self.values**2)),
        )

    def _mean(self, integrated: Floats, at_values: Floats) -> Floats:
        # sums of products rather than BLAS: the same bits with any library and number of threads
        return (self.shares * at_values).sum(axis=-1) - (self.jumps * integrated).sum(axis=-1)


def _grid(qparams: QParams) -> tuple[float, int, int]:
    if qparams.axis is not None:
        raise CalibrationError("the loss of a histogram is that of per-tensor qparams, not of qparams along an axis")
    zero_point = qparams.zero_points[0]
    return qparams.scales[0], qparams.qmin - zero_point, qparams.qmax - zero_point


def _steps(x: Floats, scale: Numbers, low: Numbers, high: Numbers) -> Floats:
    steps = np.rint(x / scale)
    return np.minimum(np.maximum(steps, low, out=steps), high, out=steps)


def _squared(x: Floats, scale: Numbers, low: Numbers, high: Numbers) -> Floats:
    return (x - _steps(x, scale, low, high) * scale) ** 2


def _integrated(x: Floats, scale: Numbers, low: Numbers, high: Numbers) -> Floats:
    steps = _steps(x, scale, low, high)
    rest = x - steps * scale
    return steps * (scale**3 / 12) + rest * rest * rest / 3
