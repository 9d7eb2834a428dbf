"""The float network and the one with rounded weights, run side by side from front to back, one group at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np

from qbench.cluster.where import Cluster, gathered
from qbench.data.portions import Feeds
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.op import Array
from qbench.ir.open_attributes import with_sizes
from qbench.ir.specialize import sized
from qbench.ir.types import TensorType, dims_replaced
from qbench.passes.groups import Group
from qbench.progress import Cancel
from qbench.runtime.feeds import open_sizes
from qbench.runtime.programs import Programs
from qbench.runtime.team import default_threads

T = TypeVar("T")
Values = Mapping[str, Array]


class Both(NamedTuple):
    """What both networks have made of a chunk of samples, and the sizes that the graph leaves open."""

    exact: Values
    rounded: Values
    sizes: FrozenMap[str, int]


@dataclass(frozen=True)
class Flow:
    """Where both networks have come to: the values that later groups read.

    Parameters
    ----------
    graph, groups
        The float graph, and its groups in execution order.
    chunks
        A `Both` each; on a cluster what stands for it there, so that no values travel.
    constants
        What the rounded network has in place of the float one's.
    sizes
        What is open in the graph, in a usual sample.
    cluster, cancel
        Where the chunks are, if not here; and whether to wait for it.
    """

    graph: Graph
    groups: Sequence[Group]
    chunks: Sequence[Any]
    constants: dict[str, Constant] = field(default_factory=dict[str, Constant])
    sizes: Mapping[str, int] = FrozenMap[str, int]()
    cluster: Cluster | None = None
    cancel: Cancel | None = None

    def fed(self, chunks: Sequence[Feeds]) -> Flow:
        """Before the first group, with what to feed."""
        return self._each(_Fed(self.graph.input_types()), chunks)

    def split(self, few: int) -> tuple[Flow, Flow]:
        """The first so many chunks, and the others."""
        return replace(self, chunks=self.chunks[:few]), replace(self, chunks=self.chunks[few:])

    def joined(self, other: Flow) -> Flow:
        """The chunks of both, which have come to the same place."""
        return replace(self, chunks=[*self.chunks, *other.chunks])

    def asked(self, function: Callable[[Both, int], T], merge: Callable[..., T]) -> T:
        """What a function says of each chunk and its number, merged."""
        if self.cluster is None:
            return reduce(merge, self._here(function, self.chunks, range(len(self.chunks))))
        calls = [(chunk, number) for number, chunk in enumerate(self.chunks)]
        return gathered([self.cluster.submit_merged(function, calls, merge)], self.cancel)[0]

    def alive(self, at: int) -> set[str]:
        """The values that are there after group `at` and are read later."""
        nodes = [node for group in self.groups[: at + 1] for node in group.nodes]
        made = {*self.graph.inputs, *(value for node in nodes for value in node.outputs)}
        return {value for value in made if self._last.get(value, -1) > at}

    def nbytes(self, at: int) -> int:
        """Bytes for one sample of what is alive after group `at`, in both networks."""
        return 2 * sum(self._sized.types[name].nbytes for name in self.alive(at))

    def advanced(self, first: int, last: int) -> Flow:
        """From before group `first` to after group `last`."""
        nodes = tuple(node for group in self.groups[first : last + 1] for node in group.nodes)
        read = {value for node in nodes for value in node.inputs}
        types = {name: self.graph.types[name] for name in read if name in self.graph.types}
        both = [{k: v for k, v in side.items() if k in read} for side in (self.graph.constants, self.constants)]
        return self._each(_Stretch(nodes, types, frozenset(self.alive(last)), *both), self.chunks)

    def _each(self, work: Callable[[Any], Both], given: Sequence[Any]) -> Flow:
        if self.cluster is None:
            return replace(self, chunks=[*self._here(work, given)])
        return replace(self, chunks=gathered([*map(partial(self.cluster.held, work), given)], self.cancel))

    def _here(self, work: Callable[..., T], *given: Iterable[Any]) -> Iterator[T]:
        """What work makes of each, in order, on as many threads as there are processors."""
        with ThreadPoolExecutor(default_threads(), thread_name_prefix="qbench rounding") as pool:
            yield from pool.map(work, *given)

    @cached_property
    def _sized(self) -> Graph:
        return sized(self.graph, self.sizes)

    @cached_property
    def _last(self) -> dict[str, int]:
        return {v: at for at, group in enumerate(self.groups) for node in group.nodes for v in node.inputs}


@dataclass(frozen=True)
class _Fed:
    """Makes the beginning of a flow; goes to other processes."""

    types: Mapping[str, TensorType]

    def __call__(self, feeds: Feeds) -> Both:
        fed = {name: np.asarray(feeds[name]) for name in self.types}
        return Both(fed, fed, FrozenMap(open_sizes((kind, fed[name].shape) for name, kind in self.types.items())))


@dataclass(frozen=True)
class _Stretch:
    """Some nodes of both networks, which differ in constants; goes to other processes.

    Parameters
    ----------
    nodes, types
        And the types of what they read.
    wanted
        The values that are read later.
    constants, others
        Of the float network, and what the rounded one has in place of some.
    """

    nodes: Sequence[Node]
    types: Mapping[str, TensorType]
    wanted: Collection[str]
    constants: Mapping[str, Constant]
    others: Mapping[str, Constant]
    _planned: dict[FrozenMap[str, int], tuple[Programs, Programs]] = field(
        init=False, default_factory=dict[FrozenMap[str, int], tuple[Programs, Programs]]
    )
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __reduce__(self) -> tuple[type[_Stretch], tuple[object, ...]]:
        return _Stretch, (self.nodes, self.types, self.wanted, self.constants, self.others)

    def __call__(self, chunk: Both) -> Both:
        outputs = sorted({value for node in self.nodes for value in node.outputs}.intersection(self.wanted))
        left = [{k: v for k, v in values.items() if k in self.wanted} for values in chunk[:2]]
        if not outputs:
            return Both(left[0], left[1], chunk.sizes)
        with self._lock:
            if chunk.sizes not in self._planned:
                exact = rounded = self._programs(chunk, outputs, self.constants)
                if self.others:
                    rounded = self._programs(chunk, outputs, {**self.constants, **self.others})
                self._planned[chunk.sizes] = exact, rounded
        exact, rounded = self._planned[chunk.sizes]
        alike = rounded is exact and all(chunk.rounded[name] is chunk.exact[name] for name in exact.graph.inputs)
        first = _run(exact, chunk.exact)
        second = first if alike else _run(rounded, chunk.rounded)
        return Both({**left[0], **first}, {**left[1], **second}, chunk.sizes)

    def _programs(self, chunk: Both, outputs: Sequence[str], constants: Mapping[str, Constant]) -> Programs:
        given = {
            name: TensorType(dims_replaced(self.types[name].shape, chunk.sizes), self.types[name].dtype)
            for name in chunk.exact
            if name in self.types
        }
        return Programs(build("part", given, outputs, [with_sizes(n, chunk.sizes) for n in self.nodes], constants))


def _run(programs: Programs, values: Values) -> Values:
    feeds = {name: values[name] for name in programs.graph.inputs}
    return programs.of(feeds).run(feeds, threads=1, finite=False)
