"""qbench itself."""

from __future__ import annotations

from pathlib import Path

from qbench.bench.engines import Outputs, Task, read_arrays
from qbench.ir import archive
from qbench.kernels.levels import current
from qbench.runtime import interpreter

__all__ = ["open_task"]


class _Interpreted:
    def __init__(self, task: Task) -> None:
        self._graph = archive.load(Path(task.model))
        self._inputs = read_arrays(task.inputs)
        self.settings = {"threads": task.threads, "level": str(current())}

    def run(self) -> Outputs:
        return list(interpreter.run(self._graph, self._inputs).values())

    def profile(self) -> list[tuple[str, str, float, int]]:
        return []


def open_task(task: Task) -> _Interpreted:
    """A graph on the interpreter."""
    return _Interpreted(task)
