"""How long models take, for reports: by layer, and as a whole."""

import threading
import time
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from statistics import median

from qbench.data.dataset import Dataset
from qbench.data.portions import Feeds
from qbench.errors import Cancelled
from qbench.ir.graph import Graph
from qbench.progress import Cancel, stopped
from qbench.quantize.quantized import Quantized
from qbench.report.entries import Latency
from qbench.report.report import Report
from qbench.runtime.programs import Programs
from qbench.runtime.team import default_threads

_SECONDS = 0.25  # that runs of one program are timed for, at least
_LEAST = 5  # runs


@dataclass(frozen=True)
class _Timed:
    latency: Latency
    layers: Mapping[str, float]


class Timings:
    """What was measured of each structure: another threshold makes no model faster, other dtypes and floats do.

    Safe to share between threads.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, _Timed] = {}
        self._measuring = threading.Lock()

    def measure(self, quantized: Quantized, data: Dataset, cancel: Cancel | None = None) -> Latency:
        """Time both models of a pair on the first sample; known results are given again."""
        key = _structure(quantized.graph)
        with self._measuring:  # two at a time would time each other
            if key not in self._known:
                self._known[key] = _measure(quantized, data.pick([0])[0], data.layout.step, cancel)
            return self._known[key].latency

    def told(self, quantized: Quantized, report: Report) -> Report:
        """The report with what was measured of its model, if anything was."""
        timed = self._known.get(_structure(quantized.graph))
        if timed is None:
            return report
        layers = tuple(replace(layer, ms=timed.layers.get(layer.name)) for layer in report.by_layer)
        return replace(report, by_layer=layers, output=replace(report.output, latency=timed.latency))


def _structure(graph: Graph) -> Hashable:
    return tuple((node.name, node.op, *(graph.types[name].dtype for name in node.outputs)) for node in graph.nodes)


def _measure(quantized: Quantized, feeds: Feeds, samples: int, cancel: Cancel | None) -> _Timed:
    threads = default_threads()
    found = [_median_ms(graph, feeds, threads, cancel) for graph in (quantized.graph, quantized.prepared)]
    return _Timed(Latency(*found, threads=threads, samples=samples), _by_layer(quantized, feeds, threads))


def _median_ms(graph: Graph, feeds: Feeds, threads: int, cancel: Cancel | None) -> float:
    program = Programs(graph).of(feeds)
    program.run(feeds, threads=threads, cancel=cancel)
    taken, end = list[float](), time.perf_counter() + _SECONDS
    while len(taken) < _LEAST or time.perf_counter() < end:
        if stopped(cancel):
            raise Cancelled("timing was stopped")
        begin = time.perf_counter()
        program.run(feeds, threads=threads)
        taken.append(1000 * (time.perf_counter() - begin))
    return median(taken)


def _by_layer(quantized: Quantized, feeds: Feeds, threads: int) -> dict[str, float]:
    """Milliseconds by layer: a step counts for the first layer in it."""
    program, known = Programs(quantized.graph).of(feeds), quantized.prepared.by_name
    layers = {step.name: next((name for name in step.nodes if name in known), None) for step in program.steps}
    found: dict[str, float] = {}
    for timing in program.profile(feeds, _LEAST, threads):
        layer = layers[timing.step]
        if layer is not None:
            found[layer] = found.get(layer, 0.0) + 1000 * timing.seconds
    return found
