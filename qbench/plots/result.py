"""The result as a line of large numbers, and the samples whose prediction flipped."""
# matplotlib says nothing of its keyword arguments
# pyright: reportUnknownMemberType=false

import base64
import io
from collections.abc import Sequence
from typing import cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from PIL import Image

from qbench.plots.figures import SOFT, TEXT, decibels, figure, number, percent, safe
from qbench.views import FlipView, ResultView

_MOST = 12  # pictures


def result_figure(view: ResultView) -> Figure:
    """A figure of the result."""
    if not view.flips:
        drawn = figure(10, 0.8)
        draw_result(drawn.add_subplot(), view)
        return drawn
    drawn = figure(10, 2.1)
    above, below = cast("tuple[SubFigure, SubFigure]", drawn.subfigures(2, 1, height_ratios=(1, 1.5)))
    draw_result(above.subplots(), view)
    draw_flips(below, view.flips)
    return drawn


def draw_result(axes: Axes, view: ResultView) -> None:
    """The numbers with what they are compared to."""
    axes.axis("off")
    before = "" if view.before is None else f"before: {decibels(view.before.sqnr_db)} dB"
    labels = "no labels" if view.now.top1 is None else f"float {percent(view.top1_float)}"
    nats = "" if view.now.nats_lost is None else f"loses {view.now.nats_lost:.4f} nats"
    flipped = nats if not view.now.flipped else f"{view.now.flipped:,} flipped"
    time = view.latency
    cards = (
        ("output SQNR", f"{decibels(view.now.sqnr_db)} dB", before),
        ("agrees with float", percent(view.now.agreement), flipped),
        ("top-1", percent(view.now.top1), labels),
        *_said(view),
        *_metric(view),
        ("constants", f"{view.bytes_now / 1e6:.3g} MB", f"float {view.bytes_float / 1e6:.3g} MB"),
        (
            "latency",
            "-" if time is None else f"{number(time.quantized_ms, 3)} ms",
            "not measured" if time is None else f"float {number(time.float_ms, 3)} ms, threads: {time.threads}",
        ),
        ("measured on", f"{view.samples:,}", f"{view.data} samples"),
    )
    for i, (title, value, note) in enumerate(cards):
        x = i / len(cards)
        axes.text(x, 0.95, title, fontsize=8, color=SOFT, va="top", transform=axes.transAxes)
        axes.text(x, 0.5, value, fontsize=14, color=TEXT, va="center", weight="bold", transform=axes.transAxes)
        axes.text(x, 0.02, note, fontsize=8, color=SOFT, va="bottom", transform=axes.transAxes)


def _said(view: ResultView) -> list[tuple[str, str, str]]:
    """What is left of what the outputs say, where that is where something is, or texts."""
    now, before = view.now, view.before
    found: list[tuple[str, str, str]] = []
    for title, field in (("where it finds", "found_db"), ("how it varies", "varies_db")):
        value, last = (outcome and getattr(outcome, field) for outcome in (now, before))
        note = "" if before is None else f"before: {decibels(last)} dB"
        found += [] if value is None else [(title, f"{decibels(value)} dB", note)]
    return found if now.texts_alike is None else [*found, ("texts read alike", percent(now.texts_alike), "")]


def _metric(view: ResultView) -> tuple[tuple[str, str, str], ...]:
    if view.metric_name is None:
        return ()
    return ((safe(view.metric_name, 18), number(view.now.metric), f"float {number(view.metric_float)}"),)


def draw_flips(area: Figure | SubFigure, flips: tuple[FlipView, ...]) -> None:
    """A picture for each of the first samples (its number where it is no image), and what the two models say."""
    shown = flips[:_MOST]
    plots = cast("Sequence[Axes]", area.subplots(1, _MOST))
    for axes in plots:
        axes.axis("off")
    for axes, flip in zip(plots, shown, strict=False):
        axes.set_title(f"{flip.float_class} > {flip.quantized_class}", fontsize=8, color=TEXT, pad=2)
        if flip.picture is None:
            axes.text(0.5, 0.5, f"#{flip.sample}", ha="center", fontsize=8, color=SOFT, transform=axes.transAxes)
            continue
        with Image.open(io.BytesIO(base64.b64decode(flip.picture.png))) as image:
            axes.imshow(np.asarray(image), cmap="gray", vmin=0, vmax=255, interpolation="nearest")
