"""Statistics of every activation, in one streaming pass over the data."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, wait
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice

from qbench.calibration.means import RunningMeans
from qbench.calibration.running import Running
from qbench.calibration.samples import Data, count_samples, samples
from qbench.calibration.statistics import Statistics
from qbench.errors import Cancelled, DataError, GraphError, nearest, shown
from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph
from qbench.ir.op import Array
from qbench.progress import Cancel
from qbench.runtime.interpreter import run

__all__ = ["Collected", "collect"]

Numbered = tuple[int, Mapping[str, Array]]
Found = dict[str, Statistics]
Parts = Generator[tuple[int, Found], None, None]

_TASK = 8  # samples that an executor's worker is given at a time, with the graph
_AHEAD = 32  # such tasks that are submitted before the first of them is done: what bounds memory
_PATIENCE = 0.1  # seconds between looks at `cancel` while workers are busy


@dataclass(frozen=True, slots=True)
class Collected:
    """What a pass has found in the samples that it came to; a pass that was stopped can go on from there."""

    samples: int = 0
    statistics: Mapping[str, Statistics] = field(default_factory=dict[str, Statistics])


def collect(
    graph: Graph,
    data: Data,
    *,
    tensors: Iterable[str] | None = None,
    executor: Executor | None = None,
    progress: Callable[[int, int | None], object] | None = None,
    cancel: Cancel | None = None,
    start: Collected | None = None,
    keep: Callable[[Collected], object] | None = None,
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
        Where samples are run: threads, processes, or a cluster. Here and now by default.
    progress
        Is told the number of samples done and, where known, of all.
    cancel
        Looked at after each sample, or with an executor after each handful.
    start, keep
        Where an earlier pass over the same data was stopped, and what is given that place after each step.

    Returns
    -------
    dict
        Statistics by tensor name, in execution order. A tensor that never had any elements has none.

    Raises
    ------
    DataError
        Empty data, wrong shape or dtype, or NaN or infinity anywhere; it names the sample and the tensor.
    GraphError
        `tensors` names something that the graph has not.
    Cancelled
        `cancel` was set.
    """
    names = _observed(graph, tensors)
    found = start or Collected()
    numbered = islice(enumerate(samples(graph, data)), found.samples, None)
    total = count_samples(graph, data)
    parts = _here(graph, names, numbered) if executor is None else _there(graph, names, numbered, executor, cancel)
    with closing(parts):
        for number, part in parts:
            found = Collected(found.samples + number, _merged(found.statistics, part))
            if keep is not None:
                keep(found)
            if progress is not None:
                progress(found.samples, total)
            if cancel is not None and cancel.is_set():
                raise Cancelled(f"calibration was cancelled after {found.samples} samples")
    return {name: found.statistics[name] for name in names if name in found.statistics}


def _merged(old: Mapping[str, Statistics], new: Found) -> Found:
    return {**old, **{name: old[name].merge(part) if name in old else part for name, part in new.items()}}


def _observed(graph: Graph, tensors: Iterable[str] | None) -> tuple[str, ...]:
    floats = [name for name in graph.activations() if is_float(graph.types[name].dtype)]
    if tensors is None:
        return tuple(floats)
    wanted = set(tensors)
    for name in sorted(wanted.difference(floats)):
        raise GraphError(f"the graph has no float activation {shown(name)}{nearest(name, floats)}")
    return tuple(name for name in floats if name in wanted)


def _channel_axes(graph: Graph) -> dict[str, int]:
    """The channel axis of each tensor that a convolution or dense layer reads, where all that read it agree."""
    found: dict[str, set[int]] = {}
    for node in graph.nodes:
        if node.op in ("nn.conv2d", "nn.dense") and node.inputs[1] in graph.constants:
            axis = 1 if node.op == "nn.conv2d" else graph.types[node.inputs[0]].rank - 1
            found.setdefault(node.inputs[0], set()).add(axis)
    return {tensor: axes.pop() for tensor, axes in found.items() if len(axes) == 1}


def _here(graph: Graph, names: tuple[str, ...], numbered: Iterable[Numbered]) -> Parts:
    return (_run_samples(graph, names, [sample]) for sample in numbered)


def _there(
    graph: Graph, names: tuple[str, ...], numbered: Iterator[Numbered], executor: Executor, cancel: Cancel | None
) -> Parts:
    tasks = iter(lambda: list(islice(numbered, _TASK)), [])
    running: deque[Future[tuple[int, Found]]] = deque()
    try:
        while True:
            for task in islice(tasks, _AHEAD - len(running)):
                running.append(executor.submit(_run_samples, graph, names, task))
            if not running:
                return
            if cancel is not None and cancel.is_set():
                raise Cancelled("calibration was cancelled")
            if wait(
                list(running)[:1], timeout=_PATIENCE
            ).done:  # in order, so that the first bad sample is the one told
                yield running.popleft().result()
    finally:
        for future in running:
            future.cancel()


def _run_samples(graph: Graph, names: tuple[str, ...], numbered: list[Numbered]) -> tuple[int, Found]:
    axes = _channel_axes(graph)
    wanted = {name: (Running(name), RunningMeans(axes[name]) if name in axes else None) for name in names}

    def observe(name: str, array: Array) -> None:
        if name in wanted and array.size:
            running, means = wanted[name]
            running.add(array)
            if means is not None:
                means.add(array)

    for number, feeds in numbered:
        try:
            run(graph, feeds, observe=observe)
        except DataError as error:
            raise DataError(f"calibration sample {number}: {error}") from error
    found = {
        name: Statistics.taken(running, None if means is None else means.means())
        for name, (running, means) in wanted.items()
        if running.count
    }
    return len(numbered), found
