"""The histogram of a tensor, and the range that its integers can say."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qbench.plots.figures import ACCENT, POOR, SOFT, TEXT, bare, figure, number, safe
from qbench.views import HistogramView

__all__ = ["draw_histogram", "histogram_figure"]


def histogram_figure(view: HistogramView, *, log: bool = True) -> Figure:
    """A figure of one histogram; `log` is about the counts."""
    drawn = figure(6.4, 3.0)
    draw_histogram(drawn.add_subplot(), view, log=log)
    return drawn


def draw_histogram(axes: Axes, view: HistogramView, *, log: bool = True) -> None:
    """Bins within the range in blue, those that are clipped in orange, the threshold as a line."""
    edges = view.start + view.width * np.arange(len(view.counts) + 1)
    low, high = min(0.0, max(view.min, -view.threshold)), max(0.0, min(view.max, view.threshold))
    axes.stairs(view.counts, edges, fill=True, color=POOR)
    inside = axes.stairs(view.counts, edges, fill=True, color=ACCENT)
    clip = axes.axvspan(low, high, color=ACCENT, alpha=0.07, linewidth=0)
    inside.set_clip_path(clip)
    bare(axes, f"{safe(view.tensor)}: {view.dtype}, {_scale(view)}")
    if log:
        axes.set_yscale("log")
        axes.set_ylim(0.5, max(view.counts) * 2)
    for at in (view.threshold, -view.threshold):
        if view.min <= at <= view.max:
            axes.axvline(at, color=TEXT, linewidth=1.2)
    axes.set_xlabel("value", fontsize=8, color=SOFT)
    axes.set_ylabel("values per bin", fontsize=8, color=SOFT)


def _scale(view: HistogramView) -> str:
    if view.channels > 1:
        return f"a scale for each of {view.channels} channels"
    return f"threshold {number(view.threshold)}, scale {number(view.scale)}, zero point {view.zero_point}"
