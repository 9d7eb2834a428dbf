"""All that a session's views can show, at once and small: for a page that has no kernel to ask."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

from qbench.errors import SessionError
from qbench.views.histogram import HistogramView
from qbench.views.ir_diff import ir_diff_view
from qbench.views.state import State
from qbench.views.tensor import TensorView, tensor_view
from qbench.views.view import View, plain

__all__ = ["StillGraphs", "StillTensors", "still_graphs", "still_tensors"]

_BINS = 1024
_CHANNEL_COUNTS = 1 << 13
_DIGITS = 6


@dataclass(frozen=True)
class StillTensors(View):
    """The pictures of every tensor.

    Parameters
    ----------
    layers
        For each layer and part a `TensorView` as plain data, but for ``histogram`` and ``curves``: those are places in
        `drawings`, since the layers of a fused group share them; None where there is none.
    drawings
        Histograms with at most 1024 bins, and curves, numbers rounded to six digits.
    """

    layers: tuple[dict[str, Any], ...]
    drawings: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class StillGraphs(View):
    """What every pass did.

    Parameters
    ----------
    steps
        As in `IRDiffView`.
    texts
        All texts, each once.
    pairs
        Steps before and after, and their lines: kind, section, left, right, layer and notes, texts by their place in
        `texts`, -1 for no layer.
    """

    steps: tuple[str, ...]
    texts: tuple[str, ...]
    pairs: tuple[tuple[int, int, tuple[tuple[Any, ...], ...]], ...]


def still_tensors(state: State, layers: Iterable[str] | None = None) -> StillTensors:
    """The tensors of some layers; None: of all."""
    names = [layer.name for layer in state.report.by_layer] if layers is None else list(layers)
    places: dict[tuple[str, str], int] = {}
    drawings: list[dict[str, Any]] = []

    def place(kind: str, tensor: str, view: View | None) -> int | None:
        if view is None:
            return None
        if (kind, tensor) not in places:
            places[kind, tensor] = len(drawings)
            drawings.append(cast("dict[str, Any]", _rounded(plain(view))))
        return places[kind, tensor]

    found: list[dict[str, Any]] = []
    for name in names:
        for part in tensor_view(state, name).parts:
            view = tensor_view(state, name, part)
            tensor = view.histogram.tensor if view.histogram else ""
            bare = cast("dict[str, Any]", plain(replace(view, histogram=None, curves=None)))
            histogram = place("histogram", tensor, _smaller(view))
            found.append(bare | {"histogram": histogram, "curves": place("curves", tensor, view.curves)})
    return StillTensors(tuple(found), tuple(drawings))


def still_graphs(state: State, *shown: tuple[int | None, int | None]) -> StillGraphs:
    """What each pass did, all of them together, and the pairs that are shown."""
    last = len(state.quantized.trace.steps)
    wanted: list[tuple[int | None, int | None]] = [*shown, (None, None), (0, last), *((i, i + 1) for i in range(last))]
    places: dict[str, int] = {}

    def place(text: str) -> int:
        return places.setdefault(text, len(places))

    pairs: dict[tuple[int, int], tuple[tuple[Any, ...], ...]] = {}
    steps: tuple[str, ...] = ()
    for before, after in dict.fromkeys(wanted):
        try:
            view = ir_diff_view(state, before, after)
        except SessionError:
            continue  # a config with fewer passes has come since
        steps = view.steps
        pairs[view.before, view.after] = tuple(
            (
                line.kind,
                line.section,
                place(line.left),
                place(line.right),
                -1 if line.layer is None else place(line.layer),
                tuple(place(note) for note in line.notes),
            )
            for line in view.lines
        )
    return StillGraphs(steps, tuple(places), tuple((*pair, lines) for pair, lines in pairs.items()))


def _smaller(view: TensorView) -> HistogramView | None:
    histogram = view.histogram
    if histogram is None:
        return None
    channels = histogram.by_channel
    if channels is not None:
        channels = channels.coarser(max(8, _CHANNEL_COUNTS // len(channels.scales)))
    return replace(histogram.coarser(_BINS), by_channel=channels)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):  # the width of bins is a power of two, and their start a multiple of it
        items = cast("dict[str, Any]", value).items()
        return {key: item if key in ("start", "width", "widths") else _rounded(item) for key, item in items}
    return [_rounded(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value
