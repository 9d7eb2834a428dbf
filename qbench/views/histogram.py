"""The histogram of a tensor with the range that its integers can say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from qbench.ir.dtypes import DType, integer_range
from qbench.kernels.tally import BINS
from qbench.quant.encodings import Encoding
from qbench.views.channels import ChannelsView, channels_view
from qbench.views.state import Part, State
from qbench.views.view import View


@dataclass(frozen=True, kw_only=True)
class HistogramView(View):
    """One tensor: its values, and how they are quantized.

    Parameters
    ----------
    tensor, part
        Which one.
    start, width, counts
        Bins of equal width: ``counts[i]`` values from ``start + i * width`` on; as fine as calibration took them, at
        most 4096. `coarser` makes fewer of them.
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
    dtype, symmetric, narrow, power_of_two
        Which integers another threshold would lead to, see :class:`~qbench.calibration.grid.Grid`.
    reason, calibrator
        As in the encoding.
    by_channel
        The channels of a weight, whether or not they have scales of their own; None where it has none.
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
    narrow: bool
    power_of_two: bool
    reason: str
    calibrator: str
    by_channel: ChannelsView | None

    @property
    def integers(self) -> tuple[int, int]:
        """The smallest and the largest integer of the type."""
        return integer_range(cast("DType", self.dtype))

    def coarser(self, most: int) -> HistogramView:
        """The same picture with at most so many bins (at least 2): neighbours merged in powers of two."""
        first, factor = round(self.start / self.width), 1
        while (first + len(self.counts) - 1) // factor - first // factor + 1 > most:
            factor *= 2
        places = (first + np.arange(len(self.counts))) // factor - first // factor
        counts = np.zeros(places[-1] + 1 if len(places) else 0, np.int64)
        np.add.at(counts, places, self.counts)
        width = self.width * factor
        return replace(self, start=first // factor * width, width=width, counts=tuple(counts.tolist()))


def histogram_view(state: State, layer: str, part: Part = "activation") -> HistogramView | None:
    """The histogram of a layer's tensor; None where the layer has no quantized tensor, or one without values."""
    tensor = state.tensor(layer, part)
    if tensor is None or 0 in state.quantized.prepared.types[tensor].shape:
        return None
    encoding, statistics, grid = (
        state.quantized.encodings[tensor],
        state.statistics_of(tensor),
        state.settings(tensor).grid,
    )
    used = np.flatnonzero(statistics.counts)
    counts = statistics.counts[used[0] : used[-1] + 1]
    q, thresholds = encoding.qparams, reached(encoding)
    per_tensor = q.axis is None
    return HistogramView(
        tensor=tensor,
        part=part,
        start=(int(used[0]) - BINS) * statistics.bin_width,
        width=statistics.bin_width,
        counts=tuple(counts.tolist()),
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
        symmetric=grid.symmetric,
        narrow=grid.narrow,
        power_of_two=grid.power_of_two,
        reason=encoding.reason,
        calibrator=encoding.calibrator,
        by_channel=_channels(state, tensor),
    )


def reached(encoding: Encoding) -> tuple[float, ...]:
    """The thresholds, one or one per channel; where the scale was given outright, what the integers reach."""
    threshold = encoding.threshold
    if threshold is None:
        return tuple(max(-low, high) for low, high in encoding.qparams.ranges)
    return threshold if isinstance(threshold, tuple) else (threshold,)


def _channels(state: State, tensor: str) -> ChannelsView | None:
    weight, encoding = state.quantized.prepared.constants.get(tensor), state.quantized.encodings[tensor]
    axis = state.points[tensor].channel_axis
    return None if weight is None or axis is None else channels_view(weight, axis, encoding.qparams, reached(encoding))
