"""The profile of the network as a picture."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qbench.plots.figures import ACCENT, BAD, GOOD, POOR, SOFT, TEXT, bare, figure, safe
from qbench.views import ProfileView
from qbench.views.layers import noise

_BEST = 60.0
_COLORS = {"low": GOOD, "some": POOR, "high": BAD}
_STRIPS = {"wide": ACCENT, "float": SOFT}


def profile_figure(view: ProfileView) -> Figure:
    """A figure of the profile."""
    drawn = figure(10, 2.6)
    draw_profile(drawn.add_subplot(), view)
    return drawn


def draw_profile(axes: Axes, view: ProfileView) -> None:
    """Each step's own noise hangs from the top; the line is what reaches it, along the graph's edges."""
    bare(axes, "SQNR along the graph, dB: what reaches each step, and its own noise from the top")
    axes.set_xlim(-0.5, max(0.5, len(view.steps) - 0.5))
    axes.set_ylim(-4, _BEST)
    for place, step in enumerate(view.steps):
        own = noise(step.own_db)
        if own is not None:
            height = _BEST - _shown(own.sqnr_db)
            axes.bar(place, height, 0.8, _BEST - height, color=_COLORS[own.level], alpha=0.6, linewidth=0)
        if step.kind in _STRIPS:
            axes.bar(place, 2, 1, -4, color=_STRIPS[step.kind], linewidth=0)
        if step.edited:
            axes.plot(place, -1, "^", color=ACCENT, markersize=4)
        if step.sqnr_db is None:
            continue
        for before in step.reads:
            if (ratio := view.steps[before].sqnr_db) is not None:
                axes.plot((before, place), (_shown(ratio), _shown(step.sqnr_db)), color=TEXT, linewidth=1.2)
    for place in view.falls:
        step = view.steps[place]
        at = place, _shown(step.sqnr_db or 0.0)
        axes.plot(*at, "o", color=BAD, markersize=5)
        axes.annotate(
            f"{safe(step.name, 24)} -{step.lasting_db:.1f} dB", at, (4, 6), textcoords="offset points", fontsize=8,
            color=TEXT, parse_math=False,
        )  # fmt: skip


def _shown(ratio: float) -> float:
    return min(_BEST, max(0.0, ratio)) if not math.isnan(ratio) else 0.0
