"""Threads that stay: a run takes a crew of them, and gives it back."""

import atexit
import os
import struct
import threading
from array import array
from collections.abc import Collection
from itertools import chain

import numpy as np

from qbench.errors import check_count
from qbench.kernels.run_table import ASLEEP, CLOSE, IDLE, JOB, LINE, SHARE, entries
from qbench.runtime.memory import address, aligned

_WORD = struct.Struct("q")
_JOB = struct.Struct(f"{len(JOB.names or ())}q")
_START = struct.Struct("6q")  # of a share: what a job sets
_DEADLINE: int = JOB.fields["deadline"][1]  # type: ignore[index]

_SHARES = 2 * LINE
"""Where the shares begin, behind the job."""

MOST_THREADS = 64


def default_threads() -> int:
    """Number of processors that this process may use."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(count, MOST_THREADS)


def checked_threads(wanted: int | None) -> int:
    """How many threads a run shall have, None: the default; DataError for far more than there are processors."""
    if wanted is None:
        return default_threads()
    check_count("threads", wanted, most=max(MOST_THREADS, 8 * default_threads()))
    return wanted


class _Worker:
    """A thread that waits for shares of work: awake for a moment after each, then asleep until a byte is written."""

    def __init__(self) -> None:
        self._memory = aligned(2 * LINE)
        self.word = self._memory.ctypes.data
        self._sleep, self.wake = os.pipe()
        self._memory.view(np.int64)[0] = IDLE
        self._thread = threading.Thread(target=self._serve, name="qbench worker", daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            self.forget()
            raise

    def _serve(self) -> None:
        entries()[1](self.word, self._sleep)

    @property
    def asleep(self) -> bool:
        """Whether it takes a write to wake it."""
        return self._memory.view(np.int64)[0] == ASLEEP

    def close(self) -> None:
        """Let the thread end; it must have no work."""
        self._memory.view(np.int64)[0] = CLOSE
        os.write(self.wake, b"x")
        self._thread.join()
        self.forget()

    def forget(self) -> None:
        """Free what a worker holds beside its thread."""
        os.close(self.wake)
        os.close(self._sleep)


class Crew:
    """Threads that do one job at a time together; the caller's is one of them."""

    def __init__(self, threads: int) -> None:
        self.workers: list[_Worker] = []
        try:
            for _ in range(threads - 1):
                self.workers.append(_Worker())
        except (RuntimeError, OSError):  # no more threads or files: those that are there do the work
            pass
        self.threads = len(self.workers) + 1
        self._table = np.array([(worker.word, worker.wake) for worker in self.workers], np.int64)
        self._memory = aligned(_SHARES + self.threads * SHARE.itemsize)
        """The job, and behind it a share for each thread."""
        self._memory[:] = 0
        self._view = self._memory.data
        self._address = self._memory.ctypes.data
        self._bases, self._width = aligned(0), 0
        self._addresses = self._address + _SHARES, self._table.ctypes.data
        self._lead = entries()[0]

    def prepare(
        self,
        *,
        rows: tuple[int, int, int],
        offsets: tuple[int, int],
        externals: Collection[tuple[int, int, int]],
        images: tuple[int, int],
        arenas: list[int],
        apart: bool = False,
        times: int = 0,
    ) -> None:
        """Set every thread to the start of a job; see :data:`~qbench.kernels.run_table.JOB`.

        Parameters
        ----------
        rows
            Address of the table, first row, row after the last.
        offsets
            Address of the buffers' offsets, and their number.
        externals
            Buffer, address at image 0 and bytes from one image to the next of each value in the caller's memory.
        images
            First image, and the one after the last.
        arenas
            An address for each thread; the same for all unless they work apart.
        apart
            Whether each thread does whole images.
        times
            Where to add what each row takes, or 0.
        """
        if self._width < offsets[1] * 8:
            self._width = -(-offsets[1] * 8 // LINE) * LINE
            self._bases = aligned(self._width * self.threads)
            self._bases[:] = 0  # also the address of buffer 0
        bases = address(self._bases)
        for thread, arena in enumerate(arenas):
            start = self._address, thread, arena, bases + self._width * thread, images[0] - 1, rows[2]
            _START.pack_into(self._view, _SHARES + thread * SHARE.itemsize, *start)
        self._externals = array("q", chain.from_iterable(externals))
        known = self._externals.buffer_info()[0], len(externals)
        job = *rows, *offsets, *known, images[1], self.threads, apart, 0, times, images[0], -1
        _JOB.pack_into(self._view, 0, *job)

    def work(self, deadline: int) -> bool:
        """Do the job, until it is done or the time has come; whether it is done."""
        _WORD.pack_into(self._view, _DEADLINE, deadline)
        return self._lead(*self._addresses, len(self.workers))

    def close(self) -> None:
        """Let the threads end."""
        for worker in self.workers:
            worker.close()


class _Crews:
    """The idle crews of a process, and how many of its threads are at work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: dict[int, list[Crew]] = {}
        self._busy = 0

    def take(self, wanted: int) -> tuple[int, Crew | None]:
        """How many threads may be used, now taken to be at work; and an idle crew of them, if there is one."""
        with self._lock:
            free = max(default_threads(), wanted) - self._busy if self._busy else wanted
            threads = max(1, min(wanted, free))
            self._busy += threads
            idle = self._idle.get(threads)
            return threads, idle.pop() if idle else None

    def give_back(self, threads: int, crew: Crew | None) -> None:
        """What was taken."""
        with self._lock:
            self._busy -= threads
            if crew:
                self._idle.setdefault(threads, []).append(crew)

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, {}
        for crews in idle.values():
            for crew in crews:
                crew.close()

    def forget(self) -> None:
        for crews in self._idle.values():
            for crew in crews:
                for worker in crew.workers:
                    worker.forget()


_crews = _Crews()


def _after_fork() -> None:
    """A forked child has none of its parent's threads."""
    global _crews
    _crews.forget()
    _crews = _Crews()


class crew:
    """``with crew(threads) as team``: so many, or fewer where other runs have the processors at this moment.

    Parameters
    ----------
    threads
        At least 1. More than there are processors is allowed, and slow.
    """

    def __init__(self, threads: int) -> None:
        self._wanted = threads

    def __enter__(self) -> Crew:
        self._lender = _crews
        self._threads, self._crew = self._lender.take(self._wanted)
        if self._crew is None:
            try:
                self._crew = Crew(self._threads)
            except BaseException:
                self._lender.give_back(self._threads, None)
                raise
        return self._crew

    def __exit__(self, *_: object) -> None:
        self._lender.give_back(self._threads, self._crew)


atexit.register(lambda: _crews.close())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
