"""The result as a line of large numbers."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qbench.plots.figures import SOFT, TEXT, decibels, figure, percent
from qbench.views import ResultView

__all__ = ["draw_result", "result_figure"]


def result_figure(view: ResultView) -> Figure:
    """A figure of the result."""
    drawn = figure(9, 0.8)
    draw_result(drawn.add_subplot(), view)
    return drawn


def draw_result(axes: Axes, view: ResultView) -> None:
    """Five numbers with what they are compared to."""
    axes.axis("off")
    before = "" if view.before is None else f"before: {decibels(view.before.sqnr_db)} dB"
    labels = "no labels" if view.now.top1 is None else f"float {percent(view.top1_float)}"
    cards = (
        ("output SQNR", f"{decibels(view.now.sqnr_db)} dB", before),
        ("same prediction as float", percent(view.now.agreement), ""),
        ("top-1", percent(view.now.top1), labels),
        ("constants", f"{view.bytes_now / 1e6:.3g} MB", f"float {view.bytes_float / 1e6:.3g} MB"),
        ("evaluated on", f"{view.samples:,}", f"{view.data} samples"),
    )
    for i, (title, value, note) in enumerate(cards):
        x = i / len(cards)
        axes.text(x, 0.95, title, fontsize=8, color=SOFT, va="top", transform=axes.transAxes)
        axes.text(x, 0.5, value, fontsize=14, color=TEXT, va="center", weight="bold", transform=axes.transAxes)
        axes.text(x, 0.02, note, fontsize=8, color=SOFT, va="bottom", transform=axes.transAxes)
