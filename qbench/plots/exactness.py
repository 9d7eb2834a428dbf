"""Where two runs of a network differ, as a picture."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false

from typing import cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from qbench.plots.figures import ACCENT, BAD, GOOD, SOFT, TEXT, bare, figure, percent, safe
from qbench.views import ExactnessLayer, ExactnessView

_LOWEST = 1e-6


def exactness_figure(view: ExactnessView, tensor: str | None = None, *, most: int = 40) -> Figure:
    """How often each layer differs, and for one of them how far and in which channels.

    Parameters
    ----------
    view
        The comparison.
    tensor
        The chosen layer's; None: the first divergent op's.
    most
        How many layers are drawn; where there are more, only those that differ, the first of them first.
    """
    layers = list(view.layers)
    if len(layers) > most:
        layers = [layer for layer in layers if layer.different or layer.different_end_to_end][:most] or layers[:most]
    name = tensor or view.first or (layers[0].tensor if layers else None)
    chosen = next((layer for layer in view.layers if layer.tensor == name), None)
    drawn = figure(12, max(3.4, 1.1 + 0.2 * len(layers)))
    drawn.suptitle(_title(view), x=0.01, ha="left", fontsize=11, color=TEXT, parse_math=False)
    left, right = cast("tuple[SubFigure, SubFigure]", drawn.subfigures(1, 2, width_ratios=(1.2, 1)))
    _draw_rates(left.subplots(), layers, name)
    above, below = cast("tuple[Axes, Axes]", tuple(right.subplots(2)))
    if chosen is not None:
        _draw_histogram(above, chosen)
        _draw_channels(below, chosen)
    return drawn


def _title(view: ExactnessView) -> str:
    who = f"{safe(view.left)} and {safe(view.right)}"
    if view.first is None:
        return f"{who}: no difference in {view.elements:,} elements"
    name = next(layer.name for layer in view.layers if layer.tensor == view.first)
    return f"{who}: {view.different:,} of {view.elements:,} elements differ; first divergent op: {safe(name)}"


def _draw_rates(axes: Axes, layers: list[ExactnessLayer], chosen: str | None) -> None:
    """A bar for each layer's own rate, a circle for the rate end to end, a line where theory says it must be."""
    bare(axes, "differ: alone (bar), end to end (circle), predicted (line)")
    for place, layer in enumerate(layers):
        color = BAD if layer.tensor == chosen else ACCENT
        if layer.rate:
            axes.barh(place, layer.rate - _LOWEST, 0.6, left=_LOWEST, color=color)
        if layer.rate_end_to_end:
            axes.plot([layer.rate_end_to_end], [place], "o", markersize=4, markerfacecolor="none", color=SOFT)
        if layer.predicted is not None and layer.predicted > _LOWEST:
            axes.plot([layer.predicted] * 2, [place - 0.42, place + 0.42], color=GOOD, linewidth=2)
    axes.set_xscale("log")
    axes.set_xlim(_LOWEST, 1.5)
    axes.set_ylim(len(layers) - 0.4, -0.6)
    axes.set_yticks(range(len(layers)))
    axes.set_yticklabels([f"{safe(layer.name, 26)}  {safe(layer.op, 18)}" for layer in layers], parse_math=False)


def _draw_histogram(axes: Axes, layer: ExactnessLayer) -> None:
    unit = "powers of ten, relative" if layer.is_real else "steps, left - right"
    bare(axes, f"{safe(layer.name)}: {layer.different:,} of {layer.elements:,} differ ({percent(layer.rate)})")
    if layer.histogram:
        steps, counts = zip(*layer.histogram, strict=True)
        axes.bar(steps, counts, 0.8, color=ACCENT)
        axes.set_yscale("log")
        axes.set_ylim(0.5, 2 * max(counts))
        reach = max(3, *map(abs, steps)) + 1
        axes.set_xlim(-reach, 1 if layer.is_real else reach)
    else:
        _nothing(axes)
    axes.set_xlabel(f"difference in {unit}", fontsize=8, color=SOFT)


def _draw_channels(axes: Axes, layer: ExactnessLayer) -> None:
    bare(axes, "elements that differ, by channel")
    if any(layer.channels):
        axes.stairs(layer.channels, fill=True, color=ACCENT)
        axes.set_xlim(0, len(layer.channels))
    else:
        _nothing(axes)
    axes.set_xlabel(f"channel (of {len(layer.channels)})" if layer.channels else "no channels", fontsize=8, color=SOFT)


def _nothing(axes: Axes) -> None:
    axes.text(0.5, 0.5, "nothing differs", ha="center", color=SOFT, fontsize=9, transform=axes.transAxes)
    axes.set_xticks([])
    axes.set_yticks([])
