"""One tensor in one figure."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false

from typing import cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qbench.plots.figures import SOFT, figure, safe
from qbench.plots.histogram import draw_channels, draw_histogram, histogram_figure
from qbench.views import TensorView


def tensor_figure(view: TensorView) -> Figure:
    """The histogram of a layer's tensor, below the ranges of its channels where it has any; or why there is none."""
    if view.histogram is None:
        return absent_figure(view.layer, view.absent)
    if view.histogram.by_channel is None:
        return histogram_figure(view.histogram)
    drawn = figure(6.4, 5.2)
    above, below = cast("tuple[Axes, Axes]", drawn.subplots(2, height_ratios=(1, 1.2)))
    draw_channels(above, view.histogram)
    draw_histogram(below, view.histogram)
    return drawn


def absent_figure(layer: str, reason: str) -> Figure:
    """Why there is nothing to draw of a layer."""
    drawn = figure(6.4, 0.8)
    draw_absent(drawn.add_subplot(), f"{safe(layer)}: {reason}")
    return drawn


def draw_absent(axes: Axes, reason: str) -> None:
    """Why there is nothing to draw."""
    axes.axis("off")
    axes.text(0.5, 0.5, safe(reason, 90), ha="center", va="center", fontsize=9, color=SOFT, parse_math=False)
