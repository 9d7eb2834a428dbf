"""The values of a tensor in both models, as a figure."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false

import base64
import io
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from PIL import Image

from qbench.plots.figures import ACCENT, SOFT, TEXT, bare, decibels, figure, number, safe
from qbench.plots.tensor import absent_figure
from qbench.views import Picture, ValuesView

_LABEL: dict[str, Any] = {"fontsize": 9, "color": SOFT}
_BOXES = 48


def values_figure(view: ValuesView) -> Figure:
    """The worst channels as boxes with their ratios, value against value, the differences, and maps where there are."""
    if view.absent:
        return absent_figure(view.layer, view.absent)
    drawn = figure(7.2, 5.0 + (2.6 if view.maps else 0))
    parts: Any = drawn.subfigures(2, height_ratios=(5, 2.6)) if view.maps else (drawn,)
    rows: Any = (2, 1, 2)
    axes = parts[0].subplot_mosaic([["boxes"] * 2, ["ratios"] * 2, ["points", "errors"]], height_ratios=rows)
    _draw_boxes(axes["boxes"], axes["ratios"], view)
    _draw_points(axes["points"], view)
    _draw_errors(axes["errors"], view)
    if view.maps:
        _draw_maps(parts[1], view)
    return drawn


def _draw_boxes(boxes: Axes, ratios: Axes, view: ValuesView) -> None:
    shown, at = view.channels[:_BOXES], np.arange(len(view.channels[:_BOXES]))
    boxes.vlines(at, [one.min for one in shown], [one.max for one in shown], color=SOFT, linewidth=0.8)
    boxes.bar(
        at, [one.high - one.low for one in shown], 0.7, bottom=[one.low for one in shown], color=ACCENT, alpha=0.6
    )
    boxes.hlines([one.median for one in shown], at - 0.35, at + 0.35, color=TEXT, linewidth=1.2)
    whose = f"the worst {len(shown)} of {len(view.channels)} channels" if len(view.channels) > 1 else "all values"
    bare(boxes, f"{safe(view.tensor)}: {whose}, {decibels(view.sqnr_db)} dB in all")
    boxes.set_ylabel("float values", **_LABEL)
    known = [one.sqnr_db if one.sqnr_db is not None and np.isfinite(one.sqnr_db) else 0.0 for one in shown]
    ratios.bar(at, known, 0.7, color=ACCENT)
    bare(ratios)
    ratios.set_ylabel("SQNR dB", **_LABEL)
    ratios.set_xlabel("channel", **_LABEL)
    every = max(1, -(-len(shown) // 16))
    for axes, names in ((boxes, False), (ratios, True)):
        axes.set_xticks(at[::every], [str(one.channel) if names else "" for one in shown[::every]])
        axes.set_xlim(-0.6, max(0.6, len(shown) - 0.4))


def _draw_points(axes: Axes, view: ValuesView) -> None:
    exact, other = np.array(view.points, np.float64).reshape(-1, 2).T
    axes.scatter(exact, other, s=4, color=ACCENT, alpha=0.5, linewidths=0)
    axes.axline((0, 0), slope=1, color=TEXT, linewidth=0.8, linestyle="--")
    bare(axes, "value against value")
    axes.set_xlabel("float", **_LABEL)
    axes.set_ylabel(view.dtype, **_LABEL)


def _draw_errors(axes: Axes, view: ValuesView) -> None:
    axes.stairs(view.counts, view.start + view.width * np.arange(len(view.counts) + 1), fill=True, color=ACCENT)
    for at in () if view.scale is None else (-view.scale / 2, view.scale / 2):
        if abs(at) <= -view.start:
            axes.axvline(at, color=TEXT, linewidth=0.8, linestyle="--")
    bare(axes, "errors" if view.scale is None else "errors; lines at half a step")
    axes.set_xlabel("quantized less float", **_LABEL)
    axes.set_ylabel("values", **_LABEL)


def _draw_maps(area: SubFigure, view: ValuesView) -> None:
    cells: Any = area.subplots(3, len(view.maps), squeeze=False)
    for column, one in zip(cells.T, view.maps, strict=True):
        for axes, (name, drawn) in zip(
            column, (("float", one.exact), (view.dtype, one.quantized), ("difference", one.difference)), strict=True
        ):
            axes.imshow(_pixels(drawn), cmap="gray", vmin=0, vmax=255)
            axes.set(xticks=(), yticks=())
            if one is view.maps[0]:
                axes.set_ylabel(name, fontsize=8, color=SOFT)
        column[0].set_title(f"channel {one.channel}", fontsize=8, color=TEXT)
        column[2].set_xlabel(f"to {number(one.largest, 2)}", fontsize=8, color=SOFT)


def _pixels(drawn: Picture) -> Any:
    with Image.open(io.BytesIO(base64.b64decode(drawn.png))) as image:
        return np.asarray(image)
