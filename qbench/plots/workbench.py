"""The whole workbench in one figure."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false

from typing import cast

from matplotlib.figure import Figure, SubFigure

from qbench.plots.curves import draw_curves
from qbench.plots.figures import TEXT, figure, safe
from qbench.plots.front import draw_front
from qbench.plots.histogram import draw_channels, draw_histogram
from qbench.plots.layers import draw_layers
from qbench.plots.profile import draw_profile
from qbench.plots.repairs import draw_repairs
from qbench.plots.result import draw_result
from qbench.plots.tensor import draw_absent
from qbench.views import TensorView, WorkbenchView

_ROWS = 26


def workbench_figure(view: WorkbenchView) -> Figure:
    """Result, profile, repairs and what a search found, if any; below them the layers, and the chosen one."""
    drawn = figure(12, 7.8 + (0 if view.repairs is None else 1.2) + (0 if view.front is None else 2.4))
    drawn.suptitle(
        f"{safe(view.title)}: {safe(view.tensor.layer)}", x=0.01, ha="left", fontsize=12, color=TEXT, parse_math=False
    )
    above, rest = _split(drawn, rows=(1, 9.5))
    middle, below = _split(rest, rows=(2, 7.5))
    if view.repairs is not None:
        advice, below = _split(below, rows=(1.5, 7.5))
        draw_repairs(advice.subplots(), view.repairs)
    if view.front is not None:
        found, below = _split(below, rows=(2.4, 7.5))
        draw_front(found.subplots(), view.front)
    left, right = _split(below, columns=(1.05, 1))
    draw_result(above.subplots(), view.result)
    draw_profile(middle.subplots(), view.profile)
    draw_layers(left.subplots(), view.layers, view.tensor.layer, _ROWS)
    _draw_tensor(right, view.tensor)
    return drawn


def _draw_tensor(area: SubFigure, view: TensorView) -> None:
    if view.histogram is None:
        draw_absent(area.subplots(), view.absent)
    elif view.curves is None:
        above, below = _split(area, rows=(1, 1))
        draw_channels(above.subplots(), view.histogram)
        draw_histogram(below.subplots(), view.histogram)
    else:
        above, below = _split(area, rows=(1, 1.4))
        draw_histogram(above.subplots(), view.histogram)
        draw_curves(list(below.subplots(len(view.curves.panels), sharex=True)), view.curves)


def _split(
    area: Figure | SubFigure, rows: tuple[float, ...] = (1,), columns: tuple[float, ...] = (1,)
) -> tuple[SubFigure, SubFigure]:
    """Two parts, beside or above each other, of these relative sizes."""
    parts = area.subfigures(len(rows), len(columns), height_ratios=rows, width_ratios=columns)
    return cast("tuple[SubFigure, SubFigure]", parts)
