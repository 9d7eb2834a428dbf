"""What each threshold would cost a tensor, and which one each calibrator would choose."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from qbench.calibration.calibrators import calibrator_of
from qbench.calibration.curve import ThresholdCurve
from qbench.calibration.curves import threshold_curve
from qbench.calibration.grid import Grid
from qbench.calibration.loss import Density
from qbench.calibration.settings import describe
from qbench.calibration.statistics import Statistics
from qbench.quant.calibrator_specs import (
    CALIBRATOR_PRESETS,
    CalibratorSpec,
    KlSpec,
    MaxSpec,
    MseSpec,
    PercentileSpec,
    PowerOfTwoSpec,
)
from qbench.views.histogram import reached
from qbench.views.state import Part, State
from qbench.views.view import View

_MOST_POINTS = 256
OFFERED: tuple[CalibratorSpec, ...] = (
    MaxSpec(),
    PercentileSpec(),
    MseSpec(),
    KlSpec(),
    KlSpec(**CALIBRATOR_PRESETS["kl_nvidia"]),
    PowerOfTwoSpec(),
)
"""The calibrators that a person may choose from."""


@dataclass(frozen=True)
class Curve(View):
    """A cost over candidate thresholds.

    Parameters
    ----------
    name, label
        ``mse``, the two parts of it (``rounding`` and ``clipping``), or ``kl`` for each kind of KL divergence; and what
        a legend says.
    meaning
        What the values are: curves of one meaning share a plot.
    thresholds, values
        At most 256 points, thresholds ascending; where there were more, the best is among those kept.
    best
        The threshold of least cost; None for a part of one.
    """

    name: str
    label: str
    meaning: str
    thresholds: tuple[float, ...]
    values: tuple[float, ...]
    best: float | None


@dataclass(frozen=True)
class Choice(View):
    """What one calibrator would choose.

    Parameters
    ----------
    label
        Its name and the numbers that it goes by.
    calibrator
        The same as a config says it.
    threshold
        Its choice.
    error, rounding, clipped
        Mean squared error, the part of it that is rounding, and fraction of the values that saturate, that this leads
        to (from the histogram).
    is_current
        Whether it decides now.
    """

    label: str
    calibrator: Mapping[str, Any]
    threshold: float
    error: float
    rounding: float
    clipped: float
    is_current: bool


@dataclass(frozen=True)
class CurvesView(View):
    """All there is to know for choosing a tensor's threshold.

    Parameters
    ----------
    tensor
        Its name.
    signal
        Mean square of the values: over a mean squared error, it is the SQNR.
    curves
        Mean squared error, its parts, and KL divergence.
    choices
        Of every calibrator, the tensor's own among them.
    threshold
        What counts now.
    """

    tensor: str
    signal: float
    curves: tuple[Curve, ...]
    choices: tuple[Choice, ...]
    threshold: float

    @property
    def panels(self) -> tuple[tuple[Curve, ...], ...]:
        """The curves by what they mean: those of one panel share an axis."""
        meanings = dict.fromkeys(curve.meaning for curve in self.curves)
        return tuple(tuple(curve for curve in self.curves if curve.meaning == meaning) for meaning in meanings)


def curves_view(state: State, layer: str, part: Part = "activation") -> CurvesView | None:
    """The curves of a layer's tensor; None where it has no one threshold: not quantized, or per channel."""
    tensor = state.tensor(layer, part)
    if tensor is None or state.quantized.encodings[tensor].qparams.axis is not None:
        return None
    encoding, settings = state.quantized.encodings[tensor], state.settings(tensor)
    statistics = state.statistics_of(tensor)
    density = Density.of(statistics)
    decides = encoding.calibrator != "override"
    specs = dict.fromkeys([*OFFERED, settings.calibrator])
    curves = {spec: threshold_curve(statistics, calibrator_of(spec), settings.grid, tensor) for spec in specs}
    choices = [
        _choice(spec, curve, statistics, density, settings.grid, decides and spec == settings.calibrator)
        for spec, curve in curves.items()
    ]
    error = _curve(curves[MseSpec()], "mse", "in all")
    drawn = [error, *_parts(error, statistics, settings.grid)]
    drawn += [_curve(curve, "kl", describe(spec)) for spec, curve in curves.items() if isinstance(spec, KlSpec)]
    return CurvesView(tensor, density.loss(encoding.qparams).signal, tuple(drawn), tuple(choices), reached(encoding)[0])


def _choice(
    spec: CalibratorSpec, curve: ThresholdCurve, statistics: Statistics, density: Density, grid: Grid, current: bool
) -> Choice:
    loss = density.loss(curve.qparams or grid.qparams(statistics, curve.best))
    said = spec.model_dump(mode="json")
    return Choice(describe(spec), said, curve.best, loss.error, loss.rounding, loss.clipped, current)


def _curve(curve: ThresholdCurve, name: str, label: str) -> Curve:
    finite = np.flatnonzero(np.isfinite(curve.divergence))
    kept = finite
    if len(finite) > _MOST_POINTS:
        best = finite[np.argmin(curve.divergence[finite])]
        spread = np.linspace(0, len(finite) - 1, _MOST_POINTS - 1).round().astype(np.intp)
        kept = np.unique(np.append(finite[spread], best))
    thresholds, values = curve.candidates[kept].tolist(), curve.divergence[kept].tolist()
    return Curve(name, label, curve.meaning, tuple(thresholds), tuple(values), curve.best)


def _parts(whole: Curve, statistics: Statistics, grid: Grid) -> tuple[Curve, Curve]:
    """The mean squared error of the values within the range, and of those without: why a threshold can be too large."""
    rounding, clipping = _errors(whole.thresholds, statistics, grid)
    return (
        Curve("rounding", "by rounding", whole.meaning, whole.thresholds, rounding, None),
        Curve("clipping", "by clipping", whole.meaning, whole.thresholds, clipping, None),
    )


@lru_cache(maxsize=64)
def _errors(
    thresholds: tuple[float, ...], statistics: Statistics, grid: Grid
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    density = Density.of(statistics)
    losses = [density.loss(grid.qparams(statistics, threshold)) for threshold in thresholds]
    return tuple(loss.rounding for loss in losses), tuple(loss.clipping for loss in losses)
