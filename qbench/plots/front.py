"""Quality against time: what a search found."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qbench.plots.figures import ACCENT, BAD, GOOD, SOFT, TEXT, bare, figure, number, safe
from qbench.views import FrontView


def front_figure(view: FrontView) -> Figure:
    """A figure of the configs that a search measured."""
    drawn = figure(7, 4)
    draw_front(drawn.add_subplot(), view)
    return drawn


def draw_front(axes: Axes, view: FrontView) -> None:
    """A dot for each config, a line through those that no other beats, a star on the one to take."""
    points = [point for point in view.points if math.isfinite(point.metric)]
    beaten = [point for point in points if not point.on_front]
    front = sorted((point for point in points if point.on_front), key=lambda point: point.ms)
    axes.plot([p.ms for p in beaten], [p.metric for p in beaten], "o", color=SOFT, ms=4, alpha=0.5)
    axes.plot([p.ms for p in front], [p.metric for p in front], "o-", color=ACCENT, ms=5, lw=1)
    for best in (point for point in points if point.is_best):
        axes.plot([best.ms], [best.metric], "*", color=BAD, ms=14)
        said = f"{safe(best.label)}\n{number(best.metric)} at {number(best.ms, 3)} ms"
        axes.annotate(
            said, (best.ms, best.metric), (8, -4), textcoords="offset points", fontsize=8, color=TEXT, va="top"
        )
    if math.isfinite(view.metric_float):
        axes.axhline(view.metric_float, color=SOFT, lw=1, ls=":")
        axes.text(
            0, view.metric_float, " float", fontsize=8, color=SOFT, va="bottom", transform=axes.get_yaxis_transform()
        )
    if view.at_least is not None:
        axes.axhline(view.at_least, color=GOOD, lw=1, ls="--")
    if view.max_ms is not None:
        axes.axvline(view.max_ms, color=GOOD, lw=1, ls="--")
    axes.set_xlabel("milliseconds", fontsize=8, color=SOFT)
    axes.set_ylabel("metric", fontsize=8, color=SOFT)
    bare(axes, f"{len(view.points)} configs measured")
