"""The histogram of a tensor with the range that its integers can say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qbench.calibration.statistics import BINS, Statistics
from qbench.quant.encodings import Encoding
from qbench.views.state import Part, State
from qbench.views.view import View

__all__ = ["HistogramView", "histogram_view", "reached"]

_MOST_BINS = 512


@dataclass(frozen=True, kw_only=True)
class HistogramView(View):
    """One tensor: its values, and how they are quantized.

    Parameters
    ----------
    tensor, part
        Which one.
    start, width, counts
        Bins of equal width: ``counts[i]`` values from ``start + i * width`` on; at most 512 bins.
    count, zeros
        How many values there are, and how many of them are exactly zero.
    min, max
        Of the values.
    low, high
        What the smallest and the largest integer stand for; of the widest channel where scales are per channel.
    threshold
        The range was clipped to ``[max(min, -threshold), min(max, threshold)]``; of the widest channel, where per
        channel. Where the scale was given outright, what the integers reach.
    scale, zero_point
        Per tensor; None where they are per channel.
    channels
        How many scales there are; 1 means per tensor.
    narrowest
        The smallest threshold of all channels.
    dtype, symmetric, reason, calibrator
        As in the encoding.
    """

    tensor: str
    part: Part
    start: float
    width: float
    counts: tuple[int, ...]
    count: int
    zeros: int
    min: float
    max: float
    low: float
    high: float
    threshold: float
    scale: float | None
    zero_point: int | None
    channels: int
    narrowest: float
    dtype: str
    symmetric: bool
    reason: str
    calibrator: str


def histogram_view(state: State, layer: str, part: Part = "activation") -> HistogramView | None:
    """The histogram of a layer's tensor; None where the layer has no quantized tensor."""
    tensor = state.tensor(layer, part)
    if tensor is None:
        return None
    encoding, statistics = state.quantized.encodings[tensor], state.statistics_of(tensor)
    start, width, counts = merged_bins(statistics)
    q = encoding.qparams
    thresholds = reached(encoding)
    per_tensor = q.axis is None
    return HistogramView(
        tensor=tensor,
        part=part,
        start=start,
        width=width,
        counts=counts,
        count=statistics.count,
        zeros=statistics.zeros,
        min=statistics.min,
        max=statistics.max,
        low=min(low for low, _ in q.ranges),
        high=max(high for _, high in q.ranges),
        threshold=max(thresholds),
        scale=q.scales[0] if per_tensor else None,
        zero_point=q.zero_points[0] if per_tensor else None,
        channels=len(q.scales),
        narrowest=min(thresholds),
        dtype=q.dtype,
        symmetric=state.settings(tensor).grid.symmetric,
        reason=encoding.reason,
        calibrator=encoding.calibrator,
    )


def merged_bins(statistics: Statistics, most: int = _MOST_BINS) -> tuple[float, float, tuple[int, ...]]:
    """Start, width and counts of at most `most` bins that cover the data, neighbours merged in powers of two."""
    used = np.flatnonzero(statistics.counts)
    first, last = int(used[0]) - BINS, int(used[-1]) - BINS  # bin k covers k * width .. (k + 1) * width
    factor = 1
    while last // factor - first // factor + 1 > most:
        factor *= 2
    counts = np.zeros(last // factor - first // factor + 1, np.int64)
    np.add.at(counts, (used - BINS) // factor - first // factor, statistics.counts[used])
    width = statistics.bin_width * factor
    return first // factor * width, width, tuple(counts.tolist())


def reached(encoding: Encoding) -> tuple[float, ...]:
    """The thresholds, one or one per channel; where the scale was given outright, what the integers reach."""
    threshold = encoding.threshold
    if threshold is None:
        return tuple(max(-low, high) for low, high in encoding.qparams.ranges)
    return threshold if isinstance(threshold, tuple) else (threshold,)
