"""Compiling on several processors: other processes leave code on disk, from where this one loads it."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from inspect import unwrap
from typing import Any

from pydantic import validate_call
from pydantic_core import to_jsonable_python

from qbench.kernels.kernel import Kernel
from qbench.process import Process, WorkerError, serve_parent

PROGRAM = "from qbench.kernels.helpers import main; main()"
_WORTH = 5
"""Kernels for which processes are started: in the time that one takes to be there, a kernel or two are compiled."""


def idle_processors() -> int:
    """How many processors had nothing to do in the last minute, beside the one that this runs on."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 1.0
    return max(0, min(processors - 1, round(processors - load)))


def compile_all(kernels: Sequence[Kernel], told: Callable[[int, int], object], helpers: int | None = None) -> None:
    """Make kernels ready: compile those that no process has compiled before, on several processors, and load the rest.

    Parameters
    ----------
    kernels
        Each once.
    told
        Hears how many are done and to do.
    helpers
        Processes that help where there is much to compile; by default one on each idle processor.
    """
    shared = deque(kernel for kernel in kernels if kernel.recipe and not kernel.ready and not kernel.kept)
    told(0, len(kernels))
    count = 0 if len(shared) < _WORTH else idle_processors() if helpers is None else helpers
    with ThreadPoolExecutor(count or 1) as pool:
        for _ in range(count):
            pool.submit(_help, shared)
        try:
            for kernel in _drawn(shared):
                _ = kernel.address
                told(sum(kernel.ready or kernel.kept for kernel in kernels), len(kernels))
        finally:
            shared.clear()
    for kernel in kernels:  # what a helper left on disk, or could not do
        _ = kernel.address
    told(len(kernels), len(kernels))


def _drawn(shared: deque[Kernel]) -> Iterator[Kernel]:
    """What is left to do, for several that draw from it."""
    with suppress(IndexError):
        while True:
            yield shared.popleft()


def _help(shared: deque[Kernel]) -> None:
    with suppress(WorkerError, OSError), Process("compiler", PROGRAM) as process:  # its share is then compiled here
        for kernel in _drawn(shared):
            assert kernel.recipe is not None
            process.ask("compile", **to_jsonable_python(kernel.recipe._asdict()))


def made(module: str, function: str, arguments: Sequence[Any]) -> Kernel:
    """The kernel of a recipe that came as JSON."""
    return validate_call(unwrap(getattr(import_module(module), function)))(*arguments)  # makes data classes of objects


class _Compiler:
    """Answers requests in a process of its own."""

    def compile(self, **recipe: Any) -> dict[str, Any]:
        """Leave a kernel's code on disk."""
        _ = made(**recipe).address
        return {}


def main() -> None:
    """Serve the parent."""
    serve_parent(_Compiler())
