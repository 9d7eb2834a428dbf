"""A Dask cluster as an executor: what is called goes to each worker once, what it is called with when it is called."""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError, Executor, Future
from typing import Any, ParamSpec, TypeVar
from weakref import WeakSet

from distributed import Client, KilledWorker, Status, Worker, WorkerPlugin
from distributed import Future as Remote

from qbench.cluster.parcel import SHELF, Missing, Parcel, call, digest_of, packed, versions
from qbench.errors import ClusterError, check_kind

_INLINE = 1 << 16  # bytes of a function that travel with each of its calls
_SCATTERED = 1 << 20  # bytes of an argument that go to a worker directly, not by way of the scheduler
_FUNCTIONS = 8  # kept by the workers
_BRANCHES = 8  # results that are merged at a time
_TRIES = 10
_GONE = (
    "the cluster lost this work, and its scheduler is gone: start it and run again; what was saved by then is not done "
    "again"
)

P = ParamSpec("P")
T = TypeVar("T")


class Workers(Executor):
    """Runs calls on the workers of a cluster; any number of them may die, and others may come.

    Parameters
    ----------
    client
        Connected; it stays the caller's.

    Notes
    -----
    What is called, with all its weights, is handed to the scheduler once: it gives it to each worker of now, and to
    those that come later before they get work. So no worker that dies takes anything along that others need. Large
    arguments go to one worker directly; where that dies, the call is made anew.
    """

    def __init__(self, client: Client) -> None:
        check_kind(client, Client, ClusterError, "cluster= takes a dask.distributed.Client, not {}")
        self.client: Any = client  # its methods give coroutines, too, for all that its types say
        self._versions = versions()
        self._delivering = threading.Lock()
        self._functions: deque[tuple[object, Parcel, frozenset[str]]] = deque()
        self._constants: dict[str, str] = {}  # digest -> name of the delivery that brought it
        self._deliveries: dict[str, frozenset[str]] = {}
        self._uses = WeakSet[_Use]()

    @property
    def ahead(self) -> int:
        """How many calls keep all workers busy."""
        return 2 * max(1, sum(self.client.nthreads().values()))

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call it on a worker; both must be what `qbench.cluster.parcel.packed` can pack."""
        if kwargs:
            raise TypeError("arguments of calls on a cluster have no names")
        return _Call(self, lambda use: self._sent(use, fn, args), _is_held(args))

    def submit_merged(
        self, fn: Callable[..., T], calls: Sequence[Sequence[object]], merge: Callable[..., T], /
    ) -> Future[T]:
        """Make several calls, and merge what they give where it lies, in a tree: only that comes back."""

        def start(use: _Use) -> Remote[T]:
            parts: list[Remote[T]] = [self._sent(use, fn, arguments) for arguments in calls]
            while len(parts) > 1:
                groups = [parts[first : first + _BRANCHES] for first in range(0, len(parts), _BRANCHES)]
                parts = [some[0] if len(some) == 1 else self._sent(use, merge, some) for some in groups]
            return parts[0]

        return _Call(self, start, any(map(_is_held, calls)))

    def held(self, fn: Callable[..., object], /, *args: object) -> Future[object]:
        """Call it on a worker, and leave the result there; the future gives what other calls can be given for it."""
        return _Call(self, lambda use: self._sent(use, fn, args), _is_held(args), fetch=False)

    def repeated(self, work: Callable[[], T], /) -> T:
        """What the work gives; it is done again where what was held is lost with those who held it."""
        for _ in range(_TRIES):
            try:
                return work()
            except _HeldLost:
                continue
        return work()

    def _sent(self, use: _Use, called: Callable[..., object], arguments: Iterable[object]) -> Remote[Any]:
        function = self._delivered(use, called)
        given = [one if isinstance(one, Remote) else self._argument(use, one) for one in arguments]
        name = getattr(called, "__name__", type(called).__name__).strip("_").lower()
        key = f"qbench-{name}-{uuid.uuid4().hex}"
        return self.client.submit(call, self._versions, function, *given, key=key, pure=False)

    def _argument(self, use: _Use, argument: object) -> Parcel | Remote[Any]:
        content, constants = packed(argument)
        parcel = Parcel(digest_of(content), content)
        with self._delivering:
            self._deliver(use, parcel.digest, constants)
        return parcel if len(content) < _SCATTERED else self.client.scatter(parcel, hash=False)

    def _delivered(self, use: _Use, function: object) -> Parcel:
        """What stands for a function, whose content is with the workers."""
        with self._delivering:
            for known, parcel, names in self._functions:
                if known is function:
                    use.names |= names
                    return parcel
            content, constants = packed(function)
            digest = digest_of(content)
            if len(content) < _INLINE and not constants:
                return Parcel(digest, content)
            while len(self._functions) >= _FUNCTIONS:
                self._functions.popleft()
            self._deliver(use, digest, {digest: content, **constants})
            parcel = Parcel(digest, None)
            self._functions.append((function, parcel, frozenset({digest, *constants})))
            return parcel

    def _deliver(self, use: _Use, digest: str, content: dict[str, Any]) -> None:
        """Hand out what the workers do not have yet, and take back what nothing needs any more."""
        use.names |= content.keys()
        new = {name: one for name, one in content.items() if name not in self._constants}
        if not new:
            return
        needed = frozenset[str]().union(
            *(names for _, _, names in self._functions), *(one.names for one in [*self._uses])
        )
        for delivery, names in [*self._deliveries.items()]:
            if not names & needed:
                del self._deliveries[delivery]
                self._constants = {name: by for name, by in self._constants.items() if by != delivery}
                _again(lambda delivery=delivery: self.client.unregister_worker_plugin(delivery))
        delivery = f"qbench-{digest[:16]}-{uuid.uuid4().hex[:8]}"
        _again(lambda: self.client.register_plugin(_Delivery(new), name=delivery))
        self._deliveries[delivery] = frozenset(new)
        self._constants |= dict.fromkeys(new, delivery)

    def use(self) -> _Use:
        """A place to note what a call needs."""
        use = _Use()
        self._uses.add(use)
        return use


class _Use:
    """What a call that runs needs of what was delivered; for as long as anybody may ask for its result."""

    def __init__(self) -> None:
        self.names = set[str]()


class _HeldLost(ClusterError):
    """What a call was to start from is gone with the worker that held it."""


def _is_held(arguments: Iterable[object]) -> bool:
    return any(isinstance(one, Remote) for one in arguments)


class _Delivery(WorkerPlugin):
    """Puts content on the shelf of each worker, those that come later too."""

    idempotent = True

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content

    def setup(self, worker: Worker) -> None:
        """Put it there."""
        SHELF.update({name: one for name, one in self._content.items() if name not in SHELF})

    def teardown(self, worker: Worker) -> None:
        """Take it away; where a worker closes, others may still be in its process."""
        for name in self._content if worker.status == Status.running else ():
            SHELF.pop(name, None)


class _Call(Future[Any]):
    """A call on a worker, made anew where what it was called with is lost.

    Dask repeats what a dead worker was doing by itself; only data that was sent to that worker alone is beyond it.
    """

    def __init__(
        self, workers: Workers, start: Callable[[_Use], Remote[Any]], is_held: bool, fetch: bool = True
    ) -> None:
        super().__init__()
        self._use, self._start, self._is_held, self._fetch = workers.use(), start, is_held, fetch
        self._client, self._left = workers.client, _TRIES
        self._begin()

    def _begin(self) -> None:
        try:
            self._remote: Any = self._start(self._use)
        except Exception as error:  # Dask raises several kinds
            if self._is_connected:
                raise
            raise ClusterError(_GONE) from error
        self._remote.add_done_callback(self._ended)

    @property
    def _is_connected(self) -> bool:
        return self._client.status == "running"

    def _ended(self, remote: Remote[Any]) -> None:
        """Called by a thread of Dask's."""
        if self.cancelled():
            return
        try:
            if self._fetch or remote.status != "finished":
                self.set_result(remote.result())
            else:
                self.set_result(remote)
        except (CancelledError, Missing) as error:
            self._lost(error)
        except BaseException as error:
            self._failed(told(error))

    def _lost(self, error: BaseException) -> None:
        self._left -= 1
        try:
            if self._left < 0 or not self._is_connected:
                raise ClusterError(_GONE) from error
            if self._is_held:
                raise _HeldLost("a worker died with what other work was to start from") from error
            self._begin()
        except BaseException as failure:
            self._failed(failure)

    def _failed(self, error: BaseException) -> None:
        if not self.cancelled():
            self.set_exception(error)

    def cancel(self) -> bool:
        """Neither begin it nor wait for it."""
        done = super().cancel()
        if done and self._is_connected:
            self._remote.cancel()
        return done


def told(error: BaseException) -> BaseException:
    """What to do about it, where that is known."""
    if isinstance(error, KilledWorker):
        return ClusterError(
            f"{error.allowed_failures + 1} workers died of the same work: give each more memory, or fewer threads; the "
            "logs of the workers say more"
        )
    if isinstance(error, ModuleNotFoundError):
        return ClusterError(f"a worker has no module {error.name}: pip install 'qbench[cluster]' there")
    return error


def _again(ask: Callable[[], object]) -> None:
    """Ask the scheduler about all workers, again where one of them dies meanwhile."""
    for left in reversed(range(_TRIES)):
        try:
            ask()
            break
        except ModuleNotFoundError as error:
            raise told(error) from error
        except OSError:
            if not left:
                raise
