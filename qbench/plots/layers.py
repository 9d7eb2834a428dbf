"""The layer table as a picture."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qbench.plots.figures import BAD, GOOD, POOR, SOFT, TEXT, decibels, figure, number, percent, safe
from qbench.views import LayerRow, LayerTableView
from qbench.views.layers import Noise

_COLUMNS = ((0.0, "left"), (0.27, "left"), (0.46, "left"), (0.63, "right"), (0.72, "right"), (0.8, "right"))
_HEADS = ("layer", "op", "runs as", "scale", "clipped", "SQNR")
_BARS = ((0.82, "own error"), (0.915, "inherited"))
_COLORS = {"low": GOOD, "some": POOR, "high": BAD}
_WIDTH = 0.085


def layers_figure(view: LayerTableView, *, most: int = 60) -> Figure:
    """A figure with a line per layer; where there are more than `most`, those around the worst."""
    drawn = figure(9, 0.5 + 0.22 * min(len(view.rows), most))
    draw_layers(drawn.add_subplot(), view, None, most)
    return drawn


def draw_layers(axes: Axes, view: LayerTableView, chosen: str | None, most: int) -> None:
    """Rows of text, and the errors as bars, longer for more error; the chosen layer is marked."""
    rows = _around(view.rows, chosen or view.worst, most)
    axes.set_xlim(0, 1)
    axes.set_ylim(max(len(rows), 18) + 0.2, -1.2)
    axes.axis("off")
    heads = [*zip(_COLUMNS, _HEADS, strict=True), *(((x, "left"), head) for x, head in _BARS)]
    for (x, side), head in heads:
        axes.text(x, -0.5, head, ha=side, va="center", fontsize=8, color=SOFT)
    for i, row in enumerate(rows):
        cells = (
            safe(row.name, 20) + (" *" if row.overridden else ""), safe(row.op, 17), row.runs_as, number(row.scale, 3),
            percent(row.clipped), decibels(row.error and row.error.sqnr_db),
        )  # fmt: skip
        if row.name == chosen:
            axes.axhspan(i - 0.1, i + 0.9, color="#1976d2", alpha=0.12, linewidth=0)
        weight = "bold" if row.name == chosen else "normal"
        for (x, side), cell in zip(_COLUMNS, cells, strict=True):
            axes.text(
                x, i + 0.4, cell, ha=side, va="center", fontsize=8, color=TEXT, fontweight=weight, parse_math=False
            )
        for (x, _), noise, hatch in zip(_BARS, (row.own, row.inherited), ("", "//////"), strict=True):
            _bar(axes, x, i + 0.4, noise, hatch)


def _bar(axes: Axes, x: float, y: float, noise: Noise | None, hatch: str) -> None:
    axes.barh(y, _WIDTH, 0.42, left=x, color="#eef0f2")
    if noise is None:
        return
    color = _COLORS[noise.level]
    inside = "white" if hatch else color
    axes.barh(y, _WIDTH * noise.share, 0.42, left=x, color=inside, edgecolor=color, hatch=hatch, linewidth=0)


def _around(rows: tuple[LayerRow, ...], name: str | None, most: int) -> tuple[LayerRow, ...]:
    """At most so many rows, with the named one among them."""
    at = next((i for i, row in enumerate(rows) if row.name == name), 0)
    first = max(0, min(at - most // 2, len(rows) - most))
    return rows[first : first + most]
