"""How far a quantized value is from the float model's: sums that add up over chunks of data."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from qbench.ir.op import Array
from qbench.ir.qparams import QParams
from qbench.kernels.deviation import sums_of_squares

LOST_DB = 20.0
"""What an output must keep: an error of a tenth moves few decisions."""

_MANY = 0.01
"""So many values that are clipped are more than chance, and it is worth a look how far they reach."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """Sums over elements.

    Parameters
    ----------
    signal, noise
        Sums of squares of the float model's values and of the differences to them.
    clipped, count
        Elements outside of the encoding's range, and all of them.
    low, high
        The extremes of the float model's values, of chunks that have more than a hundredth of them outside.
    """

    signal: float = 0.0
    noise: float = 0.0
    clipped: int = 0
    count: int = 0
    low: float = math.inf
    high: float = -math.inf

    def __add__(self, other: Deviation) -> Deviation:
        return Deviation(
            self.signal + other.signal,
            self.noise + other.noise,
            self.clipped + other.clipped,
            self.count + other.count,
            min(self.low, other.low),
            max(self.high, other.high),
        )

    @property
    def sqnr_db(self) -> float | None:
        """Signal to noise in decibels; infinite without noise, None where a sum is not finite or there is no data."""
        return decibels(self.signal, self.noise) if self.count else None

    @property
    def clipped_fraction(self) -> float:
        """Share of the elements that are clipped."""
        return self.clipped / max(1, self.count)


def deviation(
    reference: Array,
    value: Array,
    qparams: QParams | None = None,
    integers: QParams | None = None,
    floor: float = -math.inf,
) -> Deviation:
    """Compare two arrays of one shape.

    Parameters
    ----------
    reference
        Reals, float32 or narrower.
    value
        Reals too, or integers with the qparams `integers`.
    qparams
        Whose range `reference` is compared with.
    floor
        Elements of `reference` up to it count nowhere, see :func:`~qbench.forms.scores.floors`; then integers have one
        scale.

    Notes
    -----
    Sums go in the order in which `reference` lies in memory: the same arrays give the same bits however `value` lies.
    """
    order = sorted(range(reference.ndim), key=lambda axis: -abs(reference.strides[axis]))
    real = np.ascontiguousarray(reference.transpose(order), np.float32)
    other = np.ascontiguousarray(value.transpose(order), np.float32 if integers is None else None)
    if floor > -math.inf and (hidden := real <= floor).any():
        assert integers is None or integers.axis is None
        real, other = real[~hidden], other[~hidden]
    if not real.size:
        return Deviation()
    axis = None if integers is None else integers.axis
    at = 0 if axis is None else order.index(axis)
    shape = (math.prod(real.shape[:at]), real.shape[at], math.prod(real.shape[at + 1 :])) if axis is not None else ()
    shape = shape or (1, 1, real.size)
    scales = np.asarray(integers.scales if integers else (1,), np.float32)
    zero_points = np.asarray(integers.zero_points if integers else (0,), np.int64 if integers else np.float32)
    low, high = _bounds(qparams) if qparams is not None and qparams.axis is None else (-math.inf, math.inf)
    found = sums_of_squares(real.reshape(shape), other.reshape(shape), scales, zero_points, low, high)
    beyond = clipped(reference, qparams) if qparams is not None and qparams.axis is not None else found[2]
    extremes = (float(real.min()), float(real.max())) if beyond > _MANY * real.size else ()
    return Deviation(found[0], found[1], int(beyond), real.size, *extremes)


def _bounds(q: QParams) -> tuple[float, float]:
    """Half a step beyond the outermost integers, of qparams per tensor."""
    scale, zero_point = q.scales[0], q.zero_points[0]
    return (q.qmin - zero_point - 0.5) * scale, (q.qmax - zero_point + 0.5) * scale


def clipped(reference: Array, qparams: QParams) -> int:
    """How many elements lie further out than the outermost integers reach (half a step beyond them)."""
    scale = qparams.scale_array(reference.shape).astype(np.float64)
    zero_point = qparams.zero_point_array(reference.shape)
    low, high = (qparams.qmin - zero_point - 0.5) * scale, (qparams.qmax - zero_point + 0.5) * scale
    return int(np.count_nonzero(reference < low) + np.count_nonzero(reference > high))


def stride(size: int, elements: int) -> int:
    """Every how many of `size` elements to take about so many of them; never along a column, or a channel."""
    every = max(1, size // elements)
    while math.gcd(every, size) > 1:
        every += 1
    return every


def decibels(signal: float, noise: float) -> float | None:
    """``10 log10(signal / noise)``: infinite without noise, minus infinite without signal, None where not a number."""
    if not (math.isfinite(signal) and math.isfinite(noise)):
        return None
    if noise == 0:
        return math.inf
    return 10 * math.log10(signal / noise) if signal > 0 else -math.inf
