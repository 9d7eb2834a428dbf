"""qbench itself."""

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter

from qbench.bench.engines import Outputs, Task, read_arrays
from qbench.ir import archive
from qbench.kernels.levels import current
from qbench.runtime.programs import plan


class _Planned:
    """A program for this machine, with its inputs."""

    def __init__(self, task: Task) -> None:
        graph, self._inputs = archive.load(Path(task.model)), read_arrays(task.inputs)
        start = perf_counter()
        self._program, self._threads = plan(graph), task.threads
        planned = perf_counter()
        self.run()
        self.settings: Mapping[str, object] = {
            "threads": task.threads,
            "level": str(current()),
            "arena_bytes": self._program.arena_bytes,
            "plan_ms": 1e3 * (planned - start),
            "first_run_ms": 1e3 * (perf_counter() - planned),
            "interpreted": dict(self._program.fallbacks),
        }

    def run(self) -> Outputs:
        return list(self._program.run(self._inputs, threads=self._threads).values())

    def profile(self) -> list[tuple[str, str, float, int]]:
        timings = self._program.profile(self._inputs, threads=self._threads)
        return [(timing.step, timing.kernel, timing.seconds, timing.macs) for timing in timings]


def open_task(task: Task) -> _Planned:
    """Plan the graph, and run it once."""
    return _Planned(task)
