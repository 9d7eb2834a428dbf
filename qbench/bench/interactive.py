"""How long one waits for the answer to an edit: the probe at once, the accuracy on all the data after it."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np

from qbench.bench.machine import describe
from qbench.bench.subject import find
from qbench.data.load import Samples
from qbench.errors import ModelError, shown
from qbench.ir.dtypes import is_float, numpy_dtype
from qbench.ir.graph import Graph
from qbench.ir.types import Dim
from qbench.progress import StageProgress
from qbench.report.report import Report
from qbench.session.session import Session

EDITS = 20
_FACTOR = 0.9  # of the threshold, at each edit
_CALIBRATION, _EVALUATION = 16, 100  # samples


@dataclass(frozen=True)
class Answers:
    """What was measured.

    Parameters
    ----------
    model, data
        Which model, on what.
    layers
        Names of the layers that were edited, in order.
    probe_ms, full_ms
        For each of them: from the edit to the report of the probe, and from another edit to the accuracy on all data.
    last
        The last report.
    """

    model: str
    data: str
    layers: tuple[str, ...]
    probe_ms: tuple[float, ...]
    full_ms: tuple[float, ...]
    last: Report

    @property
    def samples(self) -> int:
        """How many the accuracy was measured on."""
        return self.last.output.samples

    def to_json(self) -> str:
        """Medians and worst, then each edit."""
        edits = zip(self.layers, self.probe_ms, self.full_ms, strict=True)
        content = {
            "model": self.model,
            "data": self.data,
            "samples": self.samples,
            "probe_ms": _summary(self.probe_ms),
            "full_ms": _summary(self.full_ms),
            "edits": [{"layer": layer, "probe_ms": probe, "full_ms": full} for layer, probe, full in edits],
            "machine": describe(),
        }
        return json.dumps(content, indent=1, allow_nan=False)

    def __str__(self) -> str:
        rows = zip(self.layers, self.probe_ms, self.full_ms, strict=True)
        lines = [f"{shown(layer):40}  {probe:8.1f}  {full:8.1f}" for layer, probe, full in rows]
        waits = [f"{name:40}  {f(self.probe_ms):8.1f}  {f(self.full_ms):8.1f}" for name, f in _OF.items()]
        return "\n".join([f"{'edited layer':40}  probe ms   full ms", *lines, "", *waits])


_OF: dict[str, Callable[[tuple[float, ...]], float]] = {"median": median, "worst": max}


def _summary(taken: tuple[float, ...]) -> dict[str, float]:
    return {name: of(taken) for name, of in _OF.items()}


def interactive(
    model: str,
    samples: Callable[[Graph], tuple[Samples, str]],
    shapes: Mapping[str, tuple[Dim, ...]],
    told: StageProgress | None = None,
) -> Answers:
    """Time edits of layers from the first to the last, each with the probe, and again each with the full evaluation.

    Parameters
    ----------
    model
        A network that we know by name, or a float ONNX file.
    samples
        Gives the data for a graph, and words for it.
    shapes
        See :func:`qbench.load`.
    told
        Called with how many edits are done.

    Raises
    ------
    ModelError
        No such model, or one in which nothing is quantized.
    """
    with TemporaryDirectory() as folder:
        (source,) = find([model], Path(folder), shapes)
    (x, y), data = samples(source.graph)
    cases = first(x, _EVALUATION)
    session = Session(source.graph, first(x, _CALIBRATION), cases if y is None else (cases, y[:_EVALUATION]))
    session.probe()
    last = session.run(progress=False)
    layers = _spread(last)
    taken: dict[str, list[float]] = {"probe": [], "full": []}
    for done, (kind, layer) in enumerate((kind, layer) for kind in taken for layer in layers):
        settings = _narrower(last, layer)
        begin = time.perf_counter()
        session.override(layer, **settings)
        last = session.probe() if kind == "probe" else session.run(progress=False)
        taken[kind].append(1000 * (time.perf_counter() - begin))
        if told is not None:
            told("edits", done + 1, len(taken) * len(layers))
    return Answers(source.name, data, layers, tuple(taken["probe"]), tuple(taken["full"]), last)


def random_samples(graph: Graph) -> tuple[Samples, str]:
    """Numbers where no data is at hand: how long an answer takes hardly depends on them."""
    rng = np.random.default_rng(0)

    def numbers(name: str) -> Any:
        kind = graph.types[name]
        if any(isinstance(size, str) for size in kind.shape[1:]):
            raise ModelError(f"input {shown(name)} is {kind}; give its sizes, such as --shape {name}=N,3,224,224")
        first = kind.shape[0] if kind.shape else 1
        rows = _EVALUATION if isinstance(first, str) else max(1, _EVALUATION // max(1, first)) * first
        array = rng.normal(size=(rows, *map(int, kind.shape[1:])))
        return array.astype(numpy_dtype(kind.dtype)) if is_float(kind.dtype) else np.zeros(array.shape, kind.dtype)

    return Samples({name: numbers(name) for name in graph.inputs}, None), "random numbers"


def first(x: Any, count: int) -> Any:
    """The first samples of an array, of arrays by name, or of a list."""
    if isinstance(x, Mapping):
        return {name: array[:count] for name, array in cast("Mapping[str, Any]", x).items()}
    return cast("Any", x[:count]) if isinstance(x, np.ndarray) else [x[index] for index in range(min(count, len(x)))]


def _spread(report: Report) -> tuple[str, ...]:
    """Names of layers whose scale can be edited, one for each scale, evenly spread from first to last."""
    layers = list({layer.encoded: layer.name for layer in reversed(report.by_layer) if layer.encoded}.values())[::-1]
    if not layers:
        raise ModelError("nothing in this model is quantized, so there is nothing to edit")
    count = min(EDITS, len(layers))
    return tuple(layers[round(index * (len(layers) - 1) / max(1, count - 1))] for index in range(count))


def _narrower(report: Report, name: str) -> dict[str, float]:
    layer = report.layer(name)
    key = "threshold" if isinstance(layer.threshold, float) else "scale"
    value = getattr(layer, key)
    return {key: _FACTOR * value}
