"""What each threshold would cost, and the calibrators' choices."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qbench.plots.figures import ACCENT, GOOD, SOFT, TEXT, bare, figure, number, safe
from qbench.views import CurvesView

__all__ = ["curves_figure", "draw_curves"]


def curves_figure(view: CurvesView) -> Figure:
    """A figure with one plot per curve, over the same thresholds."""
    drawn = figure(6.4, 4.2)
    draw_curves(list(drawn.subplots(len(view.curves), sharex=True)), view)
    return drawn


def draw_curves(plots: Sequence[Axes], view: CurvesView) -> None:
    """One curve a plot; the calibrators' choices as numbered ticks on the first, what counts now as a line."""
    for axes, curve, color in zip(plots, view.curves, (ACCENT, GOOD), strict=True):
        bare(axes, curve.meaning)
        values = np.array(curve.values)
        axes.plot(curve.thresholds, values, color=color, linewidth=1.4)
        if (values > 0).any():
            axes.set_yscale("log")
        axes.axvline(view.threshold, color=TEXT, linewidth=1, linestyle="--")
    first = plots[0]
    top = first.get_xaxis_transform()
    for i, choice in enumerate(sorted(view.choices, key=lambda choice: choice.threshold)):
        first.plot(
            [choice.threshold],
            [1.0],
            marker="v",
            color=TEXT if choice.is_current else SOFT,
            transform=top,
            clip_on=False,
        )
        label = f"{safe(choice.label, 16)} {number(choice.threshold, 3)}"
        first.text(
            1.01, 1.0 - 0.15 * i, ("> " if choice.is_current else "  ") + label,
            transform=first.transAxes, fontsize=7.5, va="top", color=TEXT, parse_math=False,
        )  # fmt: skip
    plots[-1].set_xlabel("threshold", fontsize=8, color=SOFT)
