"""All that a session's views can show, at once and small: for a page that has no kernel to ask."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

from qbench.errors import SessionError
from qbench.views.curves import curves_view
from qbench.views.histogram import HistogramView, histogram_view
from qbench.views.ir_diff import ir_diff_view
from qbench.views.state import Part, State
from qbench.views.tensor import tensor_facts
from qbench.views.view import View, plain

_BINS, _ALL_BINS = 1024, 1 << 18  # of a tensor, and of all of them together
_CHANNEL_COUNTS, _ALL_CHANNEL_COUNTS = 1 << 13, 1 << 18
_CURVES = 48  # tensors
_NO_CURVES = "This page has curves of the noisiest tensors only: those of this one are in the notebook."
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
        Histograms with at most 1024 bins, fewer where there are many tensors, and curves, of the 48 noisiest tensors;
        numbers rounded to six digits.
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
    shown = [tensor_facts(state, name, part) for name in names for part in tensor_facts(state, name).parts]
    tensors = dict.fromkeys(state.tensor(one.layer, one.part) or "" for one in shown)
    noisy = _noisiest(state, tensors)
    places: dict[tuple[str, str], int | None] = {}
    drawings: list[dict[str, Any]] = []

    def place(kind: str, tensor: str, draw: Callable[[], View | None]) -> int | None:
        if (kind, tensor) not in places:
            view = draw()
            places[kind, tensor] = None if view is None else len(drawings)
            drawings.extend([] if view is None else [cast("dict[str, Any]", _rounded(plain(view)))])
        return places[kind, tensor]

    def placed(layer: str, part: Part, absent: str) -> dict[str, Any]:
        tensor = state.tensor(layer, part) or ""
        if absent:
            return {"histogram": None, "curves": None}
        histogram = place("histogram", tensor, lambda: _smaller(histogram_view(state, layer, part), len(tensors)))
        if tensor not in noisy:
            return {"histogram": histogram, "curves": None, "absent": _NO_CURVES}
        return {"histogram": histogram, "curves": place("curves", tensor, lambda: curves_view(state, layer, part))}

    facts = [(one, cast("dict[str, Any]", plain(one))) for one in shown]
    return StillTensors(tuple(bare | placed(one.layer, one.part, one.absent) for one, bare in facts), tuple(drawings))


def _noisiest(state: State, tensors: Iterable[str]) -> set[str]:
    """The tensors that have curves in a page: all, or those of the layers with the most noise."""
    ratios: dict[str, float] = {}
    for layer in state.report.by_layer:
        for tensor, ratio in ((layer.encoded, layer.sqnr_db), (layer.weight, layer.weight_sqnr_db)):
            if tensor is not None and ratio is not None:
                ratios[tensor] = min(ratio, ratios.get(tensor, math.inf))
    return set(sorted(tensors, key=lambda tensor: ratios.get(tensor, math.inf))[:_CURVES])


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


def _smaller(histogram: HistogramView | None, tensors: int) -> HistogramView | None:
    """The picture with so many bins as there is room for beside those of the other tensors."""
    if histogram is None:
        return None
    channels = histogram.by_channel
    if channels is not None:
        counts = min(_CHANNEL_COUNTS, _ALL_CHANNEL_COUNTS // tensors)
        channels = channels.coarser(max(8, counts // len(channels.scales)))
    return replace(histogram.coarser(max(64, min(_BINS, _ALL_BINS // tensors))), by_channel=channels)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):  # the width of bins is a power of two, and their start a multiple of it
        items = cast("dict[str, Any]", value).items()
        return {key: item if key in ("start", "width", "widths") else _rounded(item) for key, item in items}
    if isinstance(value, list):
        return [item if type(item) is int else _rounded(item) for item in cast("list[Any]", value)]
    return value
