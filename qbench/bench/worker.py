"""The process that an engine lives in: reads a request a line from a pipe, writes a reply a line; JSON, no pickle.

Every line is an object; ``do`` names the request, the rest are its arguments. A reply has ``error`` where it went
wrong, and then the process goes on. It ends when the pipe is closed, so that nothing is left behind whatever ends the
bench.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable
from time import perf_counter
from typing import IO, Any

import numpy as np

from qbench.bench import engines
from qbench.bench.engines import Engine, Gauge, Profiled, Task


class Worker:
    """Answers requests, one method each."""

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._gauges: dict[tuple[str, ...], Gauge] = {}

    @property
    def _loaded(self) -> Engine:
        if self._engine is None:
            raise RuntimeError("open comes first")
        return self._engine

    def open(self, engine: str, task: dict[str, Any], output: str) -> dict[str, Any]:
        """Load a model, run it once, and write its first output to an ``.npy``."""
        self._engine = engines.engine(engine, Task(**task))
        np.save(output, self._engine.run()[0], allow_pickle=False)
        return {"settings": self._engine.settings}

    def turn(self, seconds: float) -> dict[str, Any]:
        """Run the model for about so long: seconds of each inference, but for the first, which warms the caches up."""
        times = [self._once()]
        if times[0] < seconds:
            end = perf_counter() + seconds
            times = [self._once()]
            while perf_counter() < end:
                times.append(self._once())
        return {"seconds": times}

    def _once(self) -> float:
        start = perf_counter()
        self._loaded.run()
        return perf_counter() - start

    def profile(self) -> dict[str, Any]:
        """Where the time goes; nothing for engines that do not know it."""
        return {"steps": self._loaded.profile() if isinstance(self._loaded, Profiled) else []}

    def read(self, gauge: list[str]) -> dict[str, Any]:
        """Read a gauge, given by its name and settings."""
        key = tuple(gauge)
        if key not in self._gauges:
            self._gauges[key] = engines.gauge(*key)
        return {"value": self._gauges[key].read()}

    def quantize(self, quantizer: str, model: str, samples: list[str], target: str) -> dict[str, Any]:
        """Write a peer's int8 form of a model."""
        engines.quantize(quantizer, model, samples, target)
        return {}


def serve(requests: Iterable[str], replies: IO[str]) -> None:
    """Answer until there are no more requests."""
    worker = Worker()
    for line in requests:
        request: dict[str, Any] = json.loads(line)
        answer: Callable[..., dict[str, Any]] = getattr(worker, request.pop("do"))
        try:
            reply = answer(**request)
        except Exception as error:  # whatever a peer raises becomes a line of the table
            reply = {"error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def main() -> None:
    """Serve the parent; Ctrl-C is its business, and what libraries print goes to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as replies:
        os.dup2(2, 1)
        serve(sys.stdin, replies)
