"""The histogram of a tensor, and the range that its integers can say; the ranges of a weight's channels."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from qbench.plots.figures import ACCENT, POOR, SOFT, TEXT, bare, decibels, figure, number, safe
from qbench.views import ChannelsView, HistogramView

_BINS = 256
_LABEL: dict[str, Any] = {"fontsize": 9, "color": SOFT}
_LEGEND: dict[str, Any] = {
    "fontsize": 8,
    "frameon": False,
    "labelcolor": TEXT,
    "handlelength": 1.4,
    "borderaxespad": 0.2,
}


def histogram_figure(view: HistogramView, *, log: bool = True) -> Figure:
    """A figure of one histogram; `log` is about the counts."""
    drawn = figure(6.4, 3.0)
    draw_histogram(drawn.add_subplot(), view, log=log)
    return drawn


def channels_figure(view: HistogramView) -> Figure:
    """A figure of the channels' ranges; of a tensor that has none, of the whole as one channel."""
    drawn = figure(6.4, 2.6)
    draw_channels(drawn.add_subplot(), view)
    return drawn


def draw_histogram(axes: Axes, view: HistogramView, *, log: bool = True) -> None:
    """Bins within the range filled, those that are clipped hatched in another colour, the threshold as a line."""
    view = view.coarser(_BINS)
    edges = view.start + view.width * np.arange(len(view.counts) + 1)
    low, high = min(0.0, max(view.min, -view.threshold)), max(0.0, min(view.max, view.threshold))
    is_clipped = view.min < low or view.max > high
    if is_clipped:
        axes.stairs(view.counts, edges, fill=True, facecolor=POOR, edgecolor="white", hatch="/////", label="clipped")
    inside = axes.stairs(view.counts, edges, fill=True, color=ACCENT, label="within range" if is_clipped else None)
    inside.set_clip_path(axes.axvspan(low, high, color=ACCENT, alpha=0.07, linewidth=0))
    bare(axes, f"{safe(view.tensor)}: {view.dtype}, {_scale(view)}")
    if log and view.counts:
        axes.set_yscale("log")
        axes.set_ylim(0.5, max(view.counts) * 2)
    inner = [at for at in (view.threshold, -view.threshold) if view.min <= at <= view.max]
    name = "threshold" if view.channels == 1 else "threshold of the widest channel"
    for i, at in enumerate(inner):
        axes.axvline(
            at, color=TEXT, linewidth=1.2, linestyle="-" if view.channels == 1 else "--", label="" if i else name
        )
    if is_clipped or inner:
        axes.legend(loc="upper right", **_LEGEND)
    axes.set_xlabel("value", **_LABEL)
    axes.set_ylabel("values per bin", **_LABEL)


def draw_channels(axes: Axes, view: HistogramView) -> None:
    """A bar from the smallest to the largest value of each channel, and lines at what its integers reach."""
    channels = view.by_channel
    if channels is None:
        mins, maxs, lows, highs = ((value,) for value in (view.min, view.max, view.low, view.high))
    else:
        mins, maxs, (lows, highs) = channels.mins, channels.maxs, _reach(view, channels)
    many = len(mins)
    at = np.arange(many)
    width = 0.8 if many < 100 else 1.0
    axes.bar(at, np.subtract(maxs, mins), width, bottom=mins, color=ACCENT, linewidth=0, label="values")
    pad = 0.08 * ((max(maxs) - min(mins)) or 1.0)
    limits = min(*mins, 0.0) - pad, max(*maxs, 0.0) + 3 * pad
    ends = [
        ((i - 0.5, y), (i + 0.5, y))
        for side in (lows, highs)
        for i, y in enumerate(side)
        if limits[0] <= y <= limits[1]
    ]
    axes.add_collection(LineCollection(ends, colors=TEXT, linewidths=1.0, label=f"reach of {view.dtype}"))
    axes.axhline(0, color=SOFT, linewidth=0.6)
    axes.set_xlim(-0.6, many - 0.4)
    axes.set_ylim(*limits)
    bare(axes, f"{safe(view.tensor)}: {_worst(channels, many)}")
    axes.legend(loc="upper right", ncols=2, **_LEGEND)
    axes.set_xlabel("channel", **_LABEL)
    axes.set_ylabel("range of values", **_LABEL)


def _reach(view: HistogramView, channels: ChannelsView) -> tuple[list[float], list[float]]:
    first, last = view.integers
    pairs = list(zip(channels.scales, channels.zero_points, strict=True))
    return [scale * (first - zero) for scale, zero in pairs], [scale * (last - zero) for scale, zero in pairs]


def _worst(channels: ChannelsView | None, many: int) -> str:
    known = [] if channels is None else [(db, i) for i, db in enumerate(channels.sqnr_db) if db is not None]
    said = f"{many} channel{'s' * (many != 1)}"
    return f"{said}; lowest SQNR {decibels(min(known)[0])} dB (channel {min(known)[1]})" if known else said


def _scale(view: HistogramView) -> str:
    if view.channels > 1:
        return f"a scale for each of {view.channels} channels"
    return f"threshold {number(view.threshold)}, scale {number(view.scale)}, zero point {view.zero_point}"
