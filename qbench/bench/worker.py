"""The process that an engine lives in."""

from time import perf_counter
from typing import Any

import numpy as np

from qbench.bench import engines
from qbench.bench.engines import Engine, Gauge, Profiled, Task
from qbench.process import serve_parent

PROGRAM = "from qbench.bench.worker import main; main()"


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


def main() -> None:
    """Serve the parent."""
    serve_parent(Worker())
