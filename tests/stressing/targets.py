"""What threads do to programs and sessions at once, each result compared with that of one thread alone."""

from __future__ import annotations

import os
import random
from collections import Counter
from dataclasses import replace
from threading import Lock
from typing import Any

from numpy.typing import NDArray

import qbench as qb
from qbench.errors import Cancelled
from qbench.ir.graph import Graph
from qbench.report.report import Report
from qbench.runtime.port import is_batched
from qbench.runtime.programs import plan
from tests.stressing.cases import Case

_MOST_THREADS = 8


class Tell:
    """Counts what was done, from any thread, and notes what went wrong."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def did(self, what: str, count: int = 1) -> None:
        with self._lock:
            self.counts[what] += count

    def compare(self, what: str, right: bool) -> None:
        with self._lock:
            self.counts["results compared"] += 1
            if not right:
                self.wrong.append(what)


class Soon:
    """A cancel that is set when it was looked at so many times."""

    def __init__(self, looks: int) -> None:
        self._looks = looks

    def is_set(self) -> bool:
        self._looks -= 1
        return self._looks < 0


class ProgramTarget:
    """A program that is run, started in the middle, cancelled, and planned anew while others run the old one."""

    def __init__(self, case: Case, rng: random.Random) -> None:
        self.name, self._graph, self._feeds = case.name, case.graph, case.feeds
        self._samples = next((len(x) for name, x in case.feeds.items() if is_batched(case.graph.types[name])), 1)
        self._program = plan(case.graph)
        made = [name for step in self._program.steps for name in step.outputs if name in case.graph.types]
        self._keep = rng.sample(made, min(len(made), 5))
        self._wanted = self._program.run(self._feeds, keep=self._keep, threads=1)

    def act(self, rng: random.Random, tell: Tell) -> None:
        if rng.random() < 0.02:
            self._program = plan(self._graph)
            tell.did("programs dropped")
        first = rng.randrange(self._samples)
        last = rng.randint(first + 1, self._samples)
        start = rng.sample(self._keep, rng.randint(0, min(2, len(self._keep)))) if rng.random() < 0.4 else []
        keep = rng.sample(self._keep, rng.randint(0, len(self._keep))) if rng.random() < 0.6 else []
        threads = rng.randint(1, _MOST_THREADS)
        cancel = Soon(rng.randrange(6)) if rng.random() < 0.1 else None
        try:
            found = self._program.run(
                {name: self._part(name, array, first, last) for name, array in self._feeds.items()},
                start={name: self._part(name, self._wanted[name], first, last) for name in start},
                keep=keep,
                threads=threads,
                cancel=cancel,
            )
        except Cancelled:
            tell.did("runs cancelled")
            return
        tell.did("runs")
        for name, array in found.items():
            wanted = self._part(name, self._wanted[name], first, last)
            said = f"{self.name}: {name}, samples {first} to {last}, {threads} threads, start {start}, keep {keep}"
            tell.compare(said, same(array, wanted))

    def _part(self, name: str, array: NDArray[Any], first: int, last: int) -> NDArray[Any]:
        if not is_batched(self._graph.types[name]):
            return array
        size = len(array) // self._samples
        return array[first * size : last * size]


class SessionTarget:
    """A session whose threshold is moved, probed, evaluated, timed and undone by several threads."""

    def __init__(self, name: str, graph: Graph, x: NDArray[Any]) -> None:
        self.name = f"session of {name}"
        self._session = qb.Session(graph, x, x[: len(x) // 2], probe_samples=4, preset="int8")
        layers = [layer for layer in self._session.probe().by_layer if isinstance(layer.threshold, float)]
        alone, self._configs = (
            qb.Session(graph, x, x[: len(x) // 2], probe_samples=4, cache_bytes=0, preset="int8"),
            [self._session.config],
        )
        for layer, factor in ((layers[0], 0.5), (layers[len(layers) // 2], 0.7), (layers[-1], 0.9)):
            alone.override(layer.name, threshold=factor * layer.threshold)
            self._configs.append(alone.config)
        self._wanted: dict[str, list[object]] = {"probe": [], "evaluation": []}
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cores)})  # of this thread, whose runs now take no other
        try:
            for config in self._configs:
                alone.config = config
                for report in (alone.probe(), alone.run(progress=False)):
                    self._wanted[report.output.data].append(facts(report))
        finally:
            os.sched_setaffinity(0, cores)

    def act(self, rng: random.Random, tell: Tell) -> None:
        session = self._session
        session.config = rng.choice(self._configs)
        tell.did("edits")
        cancel = Soon(rng.randrange(30)) if rng.random() < 0.2 else None
        try:
            if rng.random() < 0.05:
                session.latency(cancel)
                tell.did("latencies measured")
            report = session.probe(cancel) if rng.random() < 0.7 else session.run(progress=False, cancel=cancel)
        except Cancelled:
            tell.did("runs cancelled")
            return
        tell.did("runs")
        tell.compare(f"{self.name}: a {report.output.data}", facts(report) in self._wanted[report.output.data])


def same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether shape, dtype and every bit are equal."""
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()


def facts(report: Report) -> object:
    """What a report says about numbers, not about time."""
    return replace(report.output, latency=None), tuple(replace(layer, ms=None) for layer in report.by_layer)
