"""The layer table as a picture."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from qbench.plots.figures import BAD, GOOD, POOR, SOFT, TEXT, decibels, figure, number, percent, safe
from qbench.views import LayerRow, LayerTableView

__all__ = ["draw_layers", "layers_figure"]

_COLUMNS = ((0.0, "left"), (0.3, "left"), (0.53, "left"), (0.73, "right"), (0.84, "right"), (0.93, "right"))
_HEADS = ("layer", "op", "runs as", "scale", "clipped", "SQNR dB")
_GOOD_DB = 50


def layers_figure(view: LayerTableView, *, most: int = 60) -> Figure:
    """A figure with a line per layer; where there are more than `most`, those around the worst."""
    drawn = figure(7.5, 0.5 + 0.22 * min(len(view.rows), most))
    draw_layers(drawn.add_subplot(), view, None, most)
    return drawn


def draw_layers(axes: Axes, view: LayerTableView, chosen: str | None, most: int) -> None:
    """Rows of text, and the SQNR as bars; the chosen layer is marked."""
    rows = _around(view.rows, chosen or view.worst, most)
    axes.set_xlim(0, 1)
    axes.set_ylim(max(len(rows), 18) + 0.2, -1.2)
    axes.axis("off")
    for (x, side), head in zip(_COLUMNS, _HEADS, strict=True):
        axes.text(x, -0.5, head, ha=side, va="center", fontsize=8, color=SOFT)
    for i, row in enumerate(rows):
        cells = (
            safe(row.name, 22) + (" *" if row.overridden else ""),
            safe(row.op, 20), row.runs_as, number(row.scale, 3), percent(row.clipped), decibels(row.sqnr_db),
        )  # fmt: skip
        if row.name == chosen:
            axes.axhspan(i - 0.1, i + 0.9, color="#1976d2", alpha=0.12, linewidth=0)
        for (x, side), cell in zip(_COLUMNS, cells, strict=True):
            weight = "bold" if row.name == chosen else "normal"
            axes.text(
                x, i + 0.4, cell, ha=side, va="center", fontsize=8, color=TEXT, fontweight=weight, parse_math=False
            )
        if row.sqnr_db is not None:
            share = min(1.0, max(0.0, row.sqnr_db / _GOOD_DB)) if math.isfinite(row.sqnr_db) else 1.0
            color = BAD if row.sqnr_db < 15 else POOR if row.sqnr_db < 25 else GOOD
            axes.barh(i + 0.4, 0.06 * share, 0.35, left=0.94, color=color)


def _around(rows: tuple[LayerRow, ...], name: str | None, most: int) -> tuple[LayerRow, ...]:
    """At most so many rows, with the named one among them."""
    at = next((i for i, row in enumerate(rows) if row.name == name), 0)
    first = max(0, min(at - most // 2, len(rows) - most))
    return rows[first : first + most]
