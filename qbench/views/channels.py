"""The channels of a weight: their ranges at a glance, and the values of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from qbench.evaluate.measure import decibels
from qbench.ir.frozen import Constant
from qbench.ir.qparams import QParams
from qbench.quant.arithmetic import dequantize, quantize
from qbench.views.view import View

_MOST_COUNTS = 1 << 16  # numbers in all: what a browser takes at once
_MOST_BINS, _FEWEST_BINS = 512, 32

Floats = NDArray[np.float64]
T = TypeVar("T", int, float)


@dataclass(frozen=True, kw_only=True)
class ChannelsView(View):
    """All channels of one weight; every tuple has an entry for each of them.

    Parameters
    ----------
    axis
        Which axis of the weight they are.
    size
        How many values a channel has.
    mins, maxs, zeros
        Of the values, and how many are exactly zero.
    scales, zero_points
        Of the channel; the same for all where they are per tensor.
    thresholds
        What each range was clipped to; what the integers reach where the scale was given outright.
    sqnr_db
        Of the rounded weights alone, as in `qbench.evaluate.measure.decibels`: infinite where nothing is lost.
    widths, counts
        Bins: ``counts[c][i]`` values of channel c from ``(i - bins / 2) * widths[c]`` on, where bins is the length of
        each. Between 32 and 512 bins, fewer the more channels there are.
    """

    axis: int
    size: int
    mins: tuple[float, ...]
    maxs: tuple[float, ...]
    zeros: tuple[int, ...]
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    thresholds: tuple[float, ...]
    sqnr_db: tuple[float | None, ...]
    widths: tuple[float, ...]
    counts: tuple[tuple[int, ...], ...]

    def coarser(self, most: int) -> ChannelsView:
        """The same picture with at most so many bins (at least 2) for each channel: neighbours merged in pairs."""
        counts, factor = np.array(self.counts, np.int64), 1
        while counts.shape[1] > max(2, most):
            counts, factor = counts.reshape(len(counts), -1, 2).sum(axis=2), factor * 2
        widths = tuple(width * factor for width in self.widths)
        return replace(self, widths=widths, counts=_lists(counts))


def channels_view(weight: Constant, axis: int, qparams: QParams, thresholds: tuple[float, ...]) -> ChannelsView | None:
    """The channels of a weight; None where it has no values.

    Parameters
    ----------
    weight
        A constant of float16, bfloat16 or float32.
    axis
        Along which its channels lie.
    qparams
        How it is quantized, per tensor or along that axis, perhaps in blocks.
    thresholds
        One, or one for each channel.
    """
    if not weight.array.size:
        return None
    many = weight.shape[axis]
    widths, counts = _bins(weight, axis)
    rows = _rows(weight.array, axis)
    return ChannelsView(
        axis=axis,
        size=rows.shape[1],
        mins=tuple(rows.min(axis=1).tolist()),
        maxs=tuple(rows.max(axis=1).tolist()),
        zeros=tuple((rows == 0).sum(axis=1).tolist()),
        scales=_each(qparams.scales, many),
        zero_points=_each(qparams.zero_points, many),
        thresholds=_each(thresholds, many),
        sqnr_db=_sqnr(weight, axis, qparams),
        widths=widths,
        counts=counts,
    )


def bins_for(channels: int) -> int:
    """How many bins each channel gets: a power of two."""
    return int(np.clip(1 << (_MOST_COUNTS // channels).bit_length() - 1, _FEWEST_BINS, _MOST_BINS))


@lru_cache(maxsize=32)
def _bins(weight: Constant, axis: int) -> tuple[tuple[float, ...], tuple[tuple[int, ...], ...]]:
    """Widths, which are powers of two, and counts."""
    rows = _rows(weight.array, axis)
    bins = bins_for(len(rows))
    largest = np.abs(rows).max(axis=1)
    exponents = np.where(largest > 0, np.frexp(largest)[1], 0)  # largest < 2**exponent
    widths = np.ldexp(2.0, exponents - bins.bit_length() + 1)
    place = np.floor(rows / widths[:, None]).astype(np.intp) + bins // 2
    place += np.arange(len(rows))[:, None] * bins
    counts = np.bincount(place.ravel(), minlength=len(rows) * bins).reshape(len(rows), bins)
    return tuple(widths.tolist()), _lists(counts)


@lru_cache(maxsize=32)
def _sqnr(weight: Constant, axis: int, qparams: QParams) -> tuple[float | None, ...]:
    exact = _rows(weight.array, axis)
    error = exact - _rows(dequantize(quantize(weight.array, qparams), qparams), axis)
    sums = np.square(exact).sum(axis=1).tolist(), np.square(error).sum(axis=1).tolist()
    return tuple(decibels(signal, noise) for signal, noise in zip(*sums, strict=True))


def _lists(counts: NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(row) for row in counts.tolist())


def _rows(array: NDArray[np.generic], axis: int) -> Floats:
    """float64[channels, values of each]."""
    return np.moveaxis(array.astype(np.float64), axis, 0).reshape(array.shape[axis], -1)


def _each(values: tuple[T, ...], many: int) -> tuple[T, ...]:
    """One for each channel; the largest of those for its blocks."""
    blocks = len(values) // many
    return tuple(max(values[at : at + blocks]) for at in range(0, len(values), blocks)) if blocks else values * many
