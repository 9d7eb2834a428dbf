"""What becomes of chunks of data, in their order: one after the other, on threads, or where an executor runs them."""

from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from qbench.cluster.where import Cluster, gathered, in_turn
from qbench.data.dataset import Chunk, Dataset
from qbench.errors import Cancelled
from qbench.progress import Cancel, Progress, stopped

_AHEAD = 32  # chunks that an executor has before the first of them is done

P = TypeVar("P")
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


def submitted(
    executor: Executor, work: Callable[[Chunk], T], chunks: Iterable[Chunk], look: Callable[[int], object]
) -> Generator[T]:
    """What `work` makes of each chunk where an executor runs it."""
    return in_order(partial(executor.submit, work), chunks, getattr(executor, "ahead", _AHEAD), look)


def in_order(
    submit: Callable[[Chunk], Future[T]], chunks: Iterable[Chunk], ahead: int, look: Callable[[int], object]
) -> Generator[T]:
    """What becomes of each chunk; so many are begun before the first is done, and `look` is called all the while."""
    done = 0
    begun = ((chunk.stop, submit(chunk)) for chunk in chunks)
    with closing(in_turn(begun, ahead, lambda: look(done))) as results:
        for stop, made in results:
            done = stop
            yield made
    look(done)


def asked(
    function: Callable[[Sequence[P]], T],
    run: Callable[[Chunk], P],
    data: Dataset,
    least: int,
    executor: Executor | None = None,
    cancel: Cancel | None = None,
) -> T:
    """What a function says of what a run makes of all data: on a cluster the function goes to where that is.

    Parameters
    ----------
    function
        Given what became of each batch, in order.
    run
        Given a batch.
    data, least
        Cut into batches of at least so many samples.
    executor, cancel
        Where batches are run; None: here, one after the other.
    """
    look = partial(check, data.samples, None, cancel)
    if executor is None:
        return function([*alone(run, data.batches(least), look)])
    if not isinstance(executor, Cluster):
        return function([*submitted(executor, run, data.batches(least), look)])

    def work() -> T:
        parts = [*in_order(partial(executor.held, run), data.batches(least), executor.ahead, look)]
        (answer,) = gathered([executor.submit(_Asked(function), *parts)], cancel)
        return answer

    return executor.repeated(work)


class _Asked:
    """Asks a function about parts that are given one by one."""

    def __init__(self, function: Callable[[Sequence[Any]], Any]) -> None:
        self._function = function

    def __call__(self, *parts: object) -> Any:
        return self._function(parts)


def check(samples: int, progress: Progress | None, cancel: Cancel | None, done: int) -> None:
    """Tell how far it is; Cancelled where somebody asked to stop."""
    if progress is not None:
        progress(done, samples)
    if stopped(cancel):
        raise Cancelled(f"stopped after {done} of {samples} samples")
