"""Statistics of every activation, in one streaming pass over the data."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import closing
from contextvars import copy_context
from functools import partial
from itertools import islice

from qbench.calibration.counter import Counter, Numbered, Seen, counter_of, merged
from qbench.calibration.statistics import Statistics
from qbench.cluster.where import in_turn
from qbench.data.samples import Data, count_samples, samples
from qbench.errors import Cancelled, GraphError, nearest, shown
from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph
from qbench.ir.op import OPS, QuantRule
from qbench.progress import Cancel, stopped
from qbench.runtime.tallies import Tally
from qbench.runtime.team import default_threads

_TASK = 8  # samples that an executor's worker is given at a time
_AHEAD = 32  # such tasks that are submitted before the first of them is done: what bounds memory


def collect(
    graph: Graph,
    data: Data,
    *,
    tensors: Iterable[str] | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int | None], object] | None = None,
    cancel: Cancel | None = None,
    first: int = 0,
) -> dict[str, Statistics]:
    """Run data through a float graph, one sample at a time, and take statistics of its activations.

    Memory is bounded by one sample's activations (for each worker). The result is the same, bit for bit, for any order
    of the samples, any number of them per array, and any executor.

    Parameters
    ----------
    graph
        A prepared float graph.
    data
        An array, arrays by input name, or an iterable of either; axis 0 counts samples. Read once.
    tensors
        Names of the values wanted; all float inputs and node outputs by default.
    executor
        Where samples are run: threads, processes, or a cluster. On this machine's processors by default.
    progress
        Is told the number of samples done and, where known, of all.
    cancel
        Looked at after each sample, or with an executor after each handful.
    first
        Number of the first sample, for messages.

    Returns
    -------
    dict
        Statistics by tensor name, in execution order. A tensor that never had any elements has those of what it was
        joined to, or none.

    Raises
    ------
    DataError
        Empty data, wrong shape or dtype, or NaN or infinity anywhere; it names the sample and the tensor.
    GraphError
        `tensors` names something that the graph has not.
    Cancelled
        `cancel` was set.
    """
    names = observed(graph, tensors)
    total = count_samples(graph, data)
    counter = counter_of(graph, names)

    def told(done: int) -> None:
        if progress is not None:
            progress(done, total)

    look, numbered = partial(check, cancel), enumerate(samples(graph, data), first)
    if counter.stages and executor is None:
        done, found = counter.staged(numbered, look)
        told(done)
        return _completed(graph, names, found)
    workers = _Elsewhere(counter, executor) if executor else _Threads(counter)
    seen: Seen = (0, {})
    begun = ((len(task), workers.submit(task)) for task in _tasks(numbered, workers.task))
    try:
        with closing(in_turn(begun, workers.ahead, look)) as results:
            for _, more in results:
                seen = merged(seen, more)
                told(seen[0])
    finally:
        workers.close()
    _, found = merged(seen, workers.seen())
    return _completed(graph, names, found)


def check(cancel: Cancel | None) -> None:
    """Cancelled where somebody asked to stop."""
    if stopped(cancel):
        raise Cancelled("calibration was cancelled; a later run goes on from what was done")


def _completed(graph: Graph, names: Iterable[str], found: Mapping[str, Statistics]) -> dict[str, Statistics]:
    """In order. What was always empty gets those of what it is joined to: a cache holds later what it grew into."""
    known = dict(found)
    for node in reversed(graph.nodes):
        if OPS[node.op].rule == QuantRule.CONCAT and node.output in known:
            known = dict.fromkeys(node.inputs, known[node.output]) | known
    return {name: known[name] for name in names if name in known}


class _Threads:
    """Threads of this process that count one sample at a time, into tallies that they leave to each other."""

    task = 1

    def __init__(self, counter: Counter) -> None:
        self._counter, self._tallies = counter, deque[dict[str, Tally]]()
        self.ahead = 2 * default_threads()
        self._pool = ThreadPoolExecutor(default_threads(), thread_name_prefix="qbench calibration")

    def submit(self, task: list[Numbered]) -> Future[Seen]:
        return self._pool.submit(copy_context().run, self._count, task)

    def _count(self, task: list[Numbered]) -> Seen:
        try:
            tallies = self._tallies.pop()
        except IndexError:
            tallies = self._counter.tallies()
        self._counter.count(task, tallies)
        self._tallies.append(tallies)
        return len(task), {}

    def seen(self) -> Seen:
        """What was counted in all tasks; nothing is counted after that."""
        return merged(*[(0, self._counter.statistics(tallies)) for tallies in self._tallies])

    def close(self) -> None:
        self._pool.shutdown()


class _Elsewhere:
    """Workers of an executor, who give statistics of each task."""

    task, ahead = _TASK, _AHEAD

    def __init__(self, counter: Counter, executor: Executor) -> None:
        self._counter, self._executor = counter, executor

    def submit(self, task: list[Numbered]) -> Future[Seen]:
        (first, _), *_ = task
        return self._executor.submit(self._counter, first, [feeds for _, feeds in task])

    def seen(self) -> Seen:
        return 0, {}

    def close(self) -> None:
        """The executor is the caller's."""


def _tasks(numbered: Iterator[Numbered], size: int) -> Iterator[list[Numbered]]:
    while task := list(islice(numbered, size)):
        yield task


def observed(graph: Graph, tensors: Iterable[str] | None = None) -> tuple[str, ...]:
    """Names of the values that statistics are taken of: all float ones, or those wanted; GraphError if one is not."""
    floats = [name for name in graph.activations() if is_float(graph.types[name].dtype)]
    if tensors is None:
        return tuple(floats)
    wanted = set(tensors)
    for name in sorted(wanted.difference(floats)):
        raise GraphError(f"the graph has no float activation {shown(name)}{nearest(name, floats)}")
    return tuple(name for name in floats if name in wanted)
