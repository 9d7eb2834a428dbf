"""What becomes of chunks of data, in their order: one after the other, on threads, or where an executor runs them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import TypeVar

from qbench.data.dataset import Chunk
from qbench.errors import Cancelled
from qbench.progress import Cancel, Progress

__all__ = ["alone", "check", "in_order", "on_threads"]

_PATIENCE = 0.1  # seconds between looks while workers are busy

T = TypeVar("T")


def alone(work: Callable[[Chunk], T], chunks: Iterable[Chunk], look: Callable[[int], object]) -> Generator[T]:
    """What `work` makes of each chunk, one after the other."""
    done = 0
    for chunk in chunks:
        look(done)
        yield work(chunk)
        done = chunk.stop
    look(done)


def on_threads(
    work: Callable[[Chunk], T], chunks: Iterable[Chunk], workers: int, look: Callable[[int], object]
) -> Generator[T]:
    """What `work` makes of each chunk on so many threads."""
    with ThreadPoolExecutor(workers, thread_name_prefix="qbench evaluation") as pool:

        def submit(chunk: Chunk) -> Future[T]:
            return pool.submit(copy_context().run, work, chunk)

        yield from in_order(submit, chunks, workers + 1, look)


def in_order(
    submit: Callable[[Chunk], Future[T]], chunks: Iterable[Chunk], ahead: int, look: Callable[[int], object]
) -> Generator[T]:
    """What becomes of each chunk; so many are begun before the first is done, and `look` is called all the while."""
    running: deque[tuple[int, Future[T]]] = deque()
    coming, done = iter(chunks), 0
    try:
        while True:
            while len(running) < ahead and (chunk := next(coming, None)) is not None:
                running.append((chunk.stop, submit(chunk)))
            look(done)
            if not running:
                return
            if wait([running[0][1]], timeout=_PATIENCE).done:
                done, future = running.popleft()
                yield future.result()
    finally:
        for _, future in running:
            future.cancel()


def check(samples: int, progress: Progress | None, cancel: Cancel | None, done: int) -> None:
    """Tell how far it is; Cancelled where somebody asked to stop."""
    if progress is not None:
        progress(done, samples)
    if cancel is not None and cancel.is_set():
        raise Cancelled(f"stopped after {done} of {samples} samples")
