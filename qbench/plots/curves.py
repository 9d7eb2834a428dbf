"""What each threshold would cost, and the calibrators' choices."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qbench.plots.figures import ACCENT, BAD, GOOD, SOFT, TEXT, bare, decibels, figure, number, safe
from qbench.views import Choice, CurvesView

_STYLES = {"mse": (ACCENT, "-", 1.6), "rounding": (SOFT, "--", 1.2), "clipping": (BAD, ":", 1.4)}
_DASHES = ("-", "--", ":", "-.")
_BELOW = 30  # what is so many times smaller than the least cost is not drawn
_DISC = 0.036  # of the width: discs that are nearer than that would overlap


def curves_figure(view: CurvesView) -> Figure:
    """A figure with one plot per kind of cost, over the same thresholds."""
    drawn = figure(6.4, 4.4)
    draw_curves(list(drawn.subplots(len(view.panels), sharex=True)), view)
    return drawn


def draw_curves(plots: Sequence[Axes], view: CurvesView) -> None:
    """One kind of cost a plot; calibrators' choices as numbered discs above the first, what counts now as a line."""
    for axes, group in zip(plots, view.panels, strict=True):
        for i, curve in enumerate(group):
            color, dash, width = _STYLES.get(curve.name, (GOOD, _DASHES[i % 4], 1.4))
            values = np.array(curve.values)
            values[values <= 0] = np.nan
            axes.plot(
                curve.thresholds, values, color=color, linestyle=dash, linewidth=width, label=safe(curve.label, 24)
            )
        axes.set_ylabel(group[0].meaning, fontsize=9, color=SOFT)
        whole = [value for curve in group if curve.best is not None for value in curve.values if value > 0]
        if whole:
            axes.set_yscale("log")
            axes.set_ylim(min(whole) / (_BELOW if group[0].name == "mse" else 1.5), max(whole) * 1.6)
        bare(axes)
        axes.axvline(view.threshold, color=TEXT, linewidth=1.2, label="now")
        axes.legend(loc="lower left", fontsize=8, labelcolor=TEXT, edgecolor="none", framealpha=0.85)
    largest = max([view.threshold, *(curve.thresholds[-1] for curve in view.curves if curve.thresholds)])
    end = 1.02 * max([largest, *(choice.threshold for choice in view.choices)]) or 1.0
    plots[-1].set_xlim(0, end)
    plots[-1].set_xlabel("threshold", fontsize=9, color=SOFT)
    _choices(plots[0], view, end)


def _choices(axes: Axes, view: CurvesView, end: float) -> None:
    """Discs with a line to the threshold that each stands for, and to the right what the numbers mean."""
    ordered = sorted(enumerate(view.choices, 1), key=lambda pair: pair[1].threshold)
    places = _apart([choice.threshold / end for _, choice in ordered])
    for place, (i, choice) in zip(places, ordered, strict=True):
        back, front = (TEXT, "white") if choice.is_current else ("white", TEXT)
        axes.annotate(
            str(i), (choice.threshold / end, 1.0), (place, 1.1), "axes fraction", annotation_clip=False,
            fontsize=7.5, color=front, ha="center", va="center",
            bbox={"boxstyle": "circle,pad=0.25", "fc": back, "ec": TEXT, "lw": 0.7},
            arrowprops={"arrowstyle": "-", "color": SOFT, "lw": 0.7, "shrinkA": 0, "shrinkB": 0},
        )  # fmt: skip
        axes.axvline(choice.threshold, color=SOFT, linewidth=0.6, alpha=0.5)
    for i, choice in enumerate(view.choices, 1):
        said = _line(i, choice, view.signal)
        at = 1.0 - 0.13 * (i - 1)
        axes.text(1.02, at, said, transform=axes.transAxes, fontsize=8, va="top", color=TEXT, parse_math=False)


def _line(i: int, choice: Choice, signal: float) -> str:
    ratio = 10 * math.log10(signal / choice.error) if choice.error > 0 and signal > 0 else None
    said = f"{i}  {safe(choice.label, 18)}: {number(choice.threshold, 3)}"
    return (f"{said}, {decibels(ratio)} dB" if ratio is not None else said) + (
        " (decides)" if choice.is_current else ""
    )


def _apart(places: list[float]) -> list[float]:
    """Ascending fractions moved as little as it takes for the discs not to overlap."""
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + _DISC)
    places[-1:] = [min(place, 1.0) for place in places[-1:]]
    for i in reversed(range(len(places) - 1)):
        places[i] = min(places[i], places[i + 1] - _DISC)
    return places
