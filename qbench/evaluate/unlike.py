"""Data unlike those that ranges were taken from: many values lie beyond the ranges, and are clipped."""

from collections.abc import Mapping

from qbench.calibration.loss import loss
from qbench.calibration.statistics import Statistics
from qbench.evaluate.measure import Deviation
from qbench.quant.encodings import Encoding
from qbench.report.entries import Unlike

_SHARE, _FURTHER = 0.02, 0.05
"""Of the values that are clipped, and of the range that the furthest lies beyond it: less is what other data of the
same kind does, and costs next to nothing."""
_CHANCE = 10.0
"""Where calibration saw few values, so many times the share of one of them is chance."""
_ON_PURPOSE = 2.0
"""So many times the share that is clipped of the calibration data itself, as percentiles do."""


def unlike_of(
    deviations: Mapping[tuple[str, str], Deviation], encodings: Mapping[str, Encoding], seen: Mapping[str, Statistics]
) -> tuple[Unlike, ...]:
    """The tensors that data is clipped of, though calibration's was not.

    Parameters
    ----------
    deviations
        Of pairs of a float tensor and the value that stands for it, in execution order.
    encodings, seen
        By tensor; those without either are left out.
    """
    tensors = dict[str, Deviation]()
    for (tensor, _), found in deviations.items():
        if tensor in encodings and tensor in seen:
            tensors.setdefault(tensor, found)
    told = (_unlike(tensor, found, encodings[tensor], seen[tensor]) for tensor, found in tensors.items())
    return tuple(one for one in told if one is not None)


def _unlike(tensor: str, found: Deviation, encoding: Encoding, seen: Statistics) -> Unlike | None:
    qparams, share = encoding.qparams, found.clipped_fraction
    if qparams.axis is not None or share <= max(_SHARE, _CHANCE / seen.count):
        return None
    above, below = found.high - seen.max, seen.min - found.low
    ((low, high),) = qparams.ranges
    if max(above, below) <= _FURTHER * (high - low) or share <= _SHARE + _ON_PURPOSE * loss(seen, qparams).clipped:
        return None
    reaches, calibrated = (found.high, seen.max) if above > below else (found.low, seen.min)
    return Unlike(tensor, share, reaches, calibrated)
