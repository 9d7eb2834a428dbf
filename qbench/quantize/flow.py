"""The float network and the one with rounded weights, run side by side from front to back, one group at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

import numpy as np

from qbench.data.portions import Feeds
from qbench.ir.batch import batch_symbol
from qbench.ir.build import build
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph
from qbench.ir.op import Array, with_sizes
from qbench.ir.types import TensorType, dims_replaced, numel
from qbench.passes.groups import Group
from qbench.runtime.feeds import check_feeds
from qbench.runtime.programs import Programs

Values = dict[str, list[Array]]
"""Arrays by name of the value, one for each chunk of samples."""


@dataclass(frozen=True)
class Flow:
    """Where both networks have come to: the values that later groups read.

    Parameters
    ----------
    graph, groups
        The float graph, and its groups in execution order.
    exact, rounded
        The values of both networks.
    constants
        What the rounded network has in place of the float one's.
    sizes
        What the graph leaves open besides the batch, of each chunk.
    """

    graph: Graph
    groups: Sequence[Group]
    exact: Values
    rounded: Values
    constants: dict[str, Constant]
    sizes: Sequence[Mapping[str, int]]

    @classmethod
    def start(cls, graph: Graph, groups: Sequence[Group], chunks: Sequence[Feeds]) -> Flow:
        """Before the first group, with what to feed."""
        fed: Values = {name: [np.asarray(chunk[name]) for chunk in chunks] for name in graph.inputs}
        batch = batch_symbol(graph)
        each = [check_feeds(graph, {name: fed[name][index] for name in fed}) for index in range(len(chunks))]
        sizes = [FrozenMap({symbol: size for symbol, size in one.items() if symbol != batch}) for one in each]
        return cls(graph, groups, fed, fed, {}, sizes)

    @property
    def chunks(self) -> int:
        """How many chunks of samples there are."""
        return len(next(iter(self.exact.values())))

    def split(self, few: int) -> tuple[Flow, Flow]:
        """The first so many chunks, and the others."""
        parts = (slice(few), slice(few, None))
        both = [[{k: v[part] for k, v in side.items()} for side in (self.exact, self.rounded)] for part in parts]
        first, last = (
            replace(self, exact=exact, rounded=rounded, sizes=self.sizes[part])
            for (exact, rounded), part in zip(both, parts, strict=True)
        )
        return first, last

    def joined(self, other: Flow) -> Flow:
        """The chunks of both, which have come to the same place."""
        exact = {name: [*arrays, *other.exact[name]] for name, arrays in self.exact.items()}
        rounded = {name: [*arrays, *other.rounded[name]] for name, arrays in self.rounded.items()}
        return replace(self, exact=exact, rounded=rounded, sizes=[*self.sizes, *other.sizes])

    def alive(self, at: int) -> set[str]:
        """The values that are there after group `at` and are read later."""
        nodes = [node for group in self.groups[: at + 1] for node in group.nodes]
        made = {*self.graph.inputs, *(value for node in nodes for value in node.outputs)}
        return {value for value in made if self._last.get(value, -1) > at}

    def nbytes(self, at: int) -> int:
        """Bytes for one sample of what is alive after group `at`, in both networks."""
        types = [self.graph.types[name] for name in self.alive(at)]
        return 2 * sum(numel(kind.shape) * numpy_dtype(kind.dtype).itemsize for kind in types)

    def advanced(self, first: int, last: int) -> Flow:
        """From before group `first` to after group `last`."""
        wanted = self.alive(last)
        nodes = [node for group in self.groups[first : last + 1] for node in group.nodes]
        outputs = sorted(wanted.intersection(value for node in nodes for value in node.outputs))
        read = {value for node in nodes for value in node.inputs}
        types = {name: self.graph.types[name] for name in self.exact if name in read}

        def run(values: Values, constants: Mapping[str, Constant]) -> Values:
            left = {name: arrays for name, arrays in values.items() if name in wanted}
            if not outputs:
                return left
            known = {**self.graph.constants, **constants}
            made: Values = {name: [] for name in outputs}
            for sizes, indices in groupby(range(self.chunks), lambda index: self.sizes[index]):
                given = {name: TensorType(dims_replaced(t.shape, sizes), t.dtype) for name, t in types.items()}
                part = build("part", given, outputs, [with_sizes(node, sizes) for node in nodes], known)
                some = [*indices]
                for name, arrays in _run(part, values, outputs, some).items():
                    made[name] += arrays
            return left | made

        return replace(self, exact=run(self.exact, {}), rounded=run(self.rounded, self.constants))

    @cached_property
    def _last(self) -> dict[str, int]:
        return {v: at for at, group in enumerate(self.groups) for node in group.nodes for v in node.inputs}


def _run(part: Graph, values: Mapping[str, Sequence[Array]], outputs: Iterable[str], chunks: Iterable[int]) -> Values:
    programs, found = Programs(part), {name: list[Array]() for name in outputs}
    for index in chunks:
        feeds = {name: values[name][index] for name in part.inputs}
        results = programs.of(feeds).run(feeds)
        for name, arrays in found.items():
            arrays.append(results[name])
    return found
