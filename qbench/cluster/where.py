"""Where work runs, as the user says it: an executor, a cluster, or nothing at all."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Executor, Future, wait
from itertools import islice
from types import NoneType
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from qbench.errors import Cancelled, ClusterError, check_kind
from qbench.progress import Cancel, stopped

_PATIENCE = 0.1  # seconds between looks while workers are busy

P = TypeVar("P")
T = TypeVar("T")


@runtime_checkable
class Cluster(Protocol):
    """An executor that can leave results where they are, for other calls to start from."""

    @property
    def ahead(self) -> int:
        """How many calls keep all workers busy."""
        ...

    def submit(self, fn: Callable[..., T], /, *args: object) -> Future[T]:
        """One call; any of its arguments may be what :meth:`held` gave."""
        ...

    def submit_merged(
        self, fn: Callable[..., T], calls: Sequence[Sequence[object]], merge: Callable[..., T], /
    ) -> Future[T]:
        """One future of what several calls give, merged."""
        ...

    def held(self, fn: Callable[..., object], /, *args: object) -> Future[object]:
        """One call whose result stays there; the future gives what stands for it."""
        ...

    def repeated(self, work: Callable[[], T], /) -> T:
        """What the work gives; it is done again where what was held is lost with those who held it."""
        ...


def executor_of(cluster: object, executor: Executor | None = None) -> Executor | None:
    """The workers of a cluster (a ``dask.distributed.Client``), or the executor itself; None: this process.

    Raises
    ------
    ClusterError
        Both are given, Dask is not installed, or `cluster` is no client.
    """
    what = "executor= takes a concurrent.futures.Executor, not {}"
    check_kind(executor, (Executor, Cluster, NoneType), ClusterError, what)
    if cluster is None:
        return executor
    if executor is not None:
        raise ClusterError("executor= and cluster= both say where work runs; give one of them")
    try:
        from qbench.cluster.workers import Workers  # with Dask behind it
    except ImportError as error:
        raise ClusterError("cluster= needs Dask: pip install 'qbench[cluster]'") from error
    return Workers(cast("Any", cluster))


def in_turn(begun: Iterable[tuple[P, Future[T]]], ahead: int, look: Callable[[], object]) -> Generator[tuple[P, T]]:
    """What calls give, in their order, so that of several errors the first is the one that is told.

    Parameters
    ----------
    begun
        Calls, each with a name of any kind; a call begins when this is asked for it.
    ahead
        How many are begun before the first of them is done: what bounds memory.
    look
        Called while workers are busy; what it raises ends all, and those not begun by a worker never are.
    """
    coming, running = iter(begun), deque[tuple[P, Future[T]]]()
    try:
        while True:
            running.extend(islice(coming, ahead - len(running)))
            if not running:
                return
            look()
            name, future = running[0]
            if wait([future], timeout=_PATIENCE).done:
                running.popleft()
                yield name, future.result()
    finally:
        for _, future in running:
            future.cancel()


def gathered(futures: Sequence[Future[T]], cancel: Cancel | None) -> list[T]:
    """What they give, in their order; Cancelled where somebody asks to stop, and then those not begun never are."""
    try:
        while not_done := wait(futures, timeout=_PATIENCE, return_when=FIRST_EXCEPTION).not_done:
            if stopped(cancel):
                raise Cancelled("stopped while other processes were at work")
            if len(not_done) < len(futures):
                for future in futures:
                    if future.done():
                        future.result()  # an error is told at once
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()
