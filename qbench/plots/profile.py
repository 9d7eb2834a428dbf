"""The profile of the network as a picture."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false

import math
from collections import defaultdict

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
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
    noises: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)  # a call for each bar takes a second of 500
    strips: defaultdict[str, list[int]] = defaultdict(list)
    lines: list[tuple[tuple[float, float], tuple[float, float]]] = []
    for place, step in enumerate(view.steps):
        own = noise(step.own_db)
        if own is not None:
            noises[own.level].append((place, _BEST - _shown(own.sqnr_db)))
        strips[step.kind].append(place)
        before = [(place, view.steps[place].sqnr_db) for place in step.reads] if step.sqnr_db is not None else []
        end = place, _shown(step.sqnr_db or 0.0)
        lines += [((start, _shown(ratio)), end) for start, ratio in before if ratio is not None]
    for level, bars in noises.items():
        places, heights = zip(*bars, strict=True)
        bottoms = [_BEST - height for height in heights]
        axes.bar(places, heights, 0.8, bottoms, color=_COLORS[level], alpha=0.6, linewidth=0)
    for kind, color in _STRIPS.items():
        axes.bar(strips[kind], 2, 1, -4, color=color, linewidth=0)
    edited = [place for place, step in enumerate(view.steps) if step.edited]
    axes.plot(edited, [-1] * len(edited), "^", color=ACCENT, markersize=4)
    axes.add_collection(LineCollection(lines, colors=TEXT, linewidths=1.2, zorder=2))
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
