"""Compiling on several processors: other processes leave code on disk, from where this one loads it."""

import atexit
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from inspect import unwrap
from itertools import chain
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from pydantic import validate_call
from pydantic_core import to_jsonable_python

from qbench.kernels.code import Code
from qbench.kernels.kernel import Kernel
from qbench.process import Process, WorkerError, serve_parent

PROGRAM = "from qbench.kernels.helpers import main; main()"
_WORTH = 5
"""Codes for which processes are started: in the time that one takes to be there, a kernel or two are compiled."""


def idle_processors() -> int:
    """How many processors have nothing to do, beside the one that this runs on."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])  # now, this thread included
    except (OSError, IndexError, ValueError):
        running = 1 + round(os.getloadavg()[0]) if hasattr(os, "getloadavg") else processors
    return max(0, min(processors - 1, processors - running))


class Helpers:
    """Processes that compile what is queued, and end when there is nothing left.

    Each code is drawn once, by a helper or by this process. What a helper cannot do, whoever needs it does.
    """

    def __init__(self) -> None:
        self._queue: deque[Code] = deque()
        self._drawn: set[str] = set()
        self._lock = Lock()
        self._threads: list[Thread] = []
        self._processes: set[Process] = set()
        atexit.register(self.stop)

    def ask(self, codes: Sequence[Code], count: int | None = None) -> None:
        """Queue what no process has compiled yet, before all else, and start helpers if it is worth it.

        Parameters
        ----------
        codes
            Those with a recipe can be asked for.
        count
            Processes that help; by default one on each idle processor.
        """
        wanted = [code for code in codes if code.recipe and not code.ready and not code.kept]
        with self._lock:
            self._queue.extendleft(reversed(wanted))
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            if len(wanted) >= _WORTH:
                for _ in range(len(self._threads), idle_processors() if count is None else count):
                    self._threads.append(Thread(target=self._help, daemon=True))
                    self._threads[-1].start()

    def draw(self, codes: Iterable[Code]) -> Iterator[Code]:
        """Those that nobody has drawn, to be compiled by the caller."""
        for code in codes:
            with self._lock:
                new = code.name not in self._drawn
                self._drawn.add(code.name)
            if new:
                yield code

    def join(self) -> None:
        """Wait until nothing is left to do."""
        for thread in self._threads:
            thread.join()

    def stop(self) -> None:
        """End all processes, whatever they do."""
        self._queue.clear()
        for process in tuple(self._processes):
            process.kill()
        self.join()

    def _queued(self) -> Iterator[Code]:
        with suppress(IndexError):
            while True:
                yield self._queue.popleft()

    def _help(self) -> None:
        with suppress(WorkerError, OSError), Process("compiler", PROGRAM) as process:
            self._processes.add(process)
            try:
                for code in self.draw(self._queued()):
                    assert code.recipe is not None
                    process.ask("compile", **to_jsonable_python(code.recipe._asdict()))
            finally:
                self._processes.discard(process)


HELPERS = Helpers()


def compile_all(codes: Sequence[Code], told: Callable[[int, int], object], helpers: int | None = None) -> None:
    """Make code ready: compile what no process has compiled before, on several processors, and load the rest.

    Parameters
    ----------
    codes
        Each once.
    told
        Hears how many are done and to do.
    helpers
        Processes that help where there is much to compile; by default one on each idle processor.
    """
    told(0, len(codes))
    HELPERS.ask(codes, helpers)
    for code in chain(HELPERS.draw(codes), codes):  # first what nobody else is at
        if not code.ready:
            _ = code.address
            told(sum(code.ready or code.kept for code in codes), len(codes))
    told(len(codes), len(codes))


def made(module: str, function: str, arguments: Sequence[Any]) -> Kernel | Code:
    """What a recipe makes that came as JSON."""
    return validate_call(unwrap(getattr(import_module(module), function)))(*arguments)  # makes data classes of objects


class _Compiler:
    """Answers requests in a process of its own."""

    def compile(self, **recipe: Any) -> dict[str, Any]:
        """Leave code on disk."""
        _ = made(**recipe).address
        return {}


def main() -> None:
    """Serve the parent."""
    serve_parent(_Compiler())
