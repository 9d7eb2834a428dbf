"""Running only what is asked for and not yet known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable

from qbench.engine.cache import ValueCache
from qbench.engine.dataset import Chunk
from qbench.ir.graph import Graph, Node
from qbench.ir.op import Array
from qbench.runtime.interpreter import step

__all__ = ["PartialRun"]


class PartialRun:
    """One chunk of data on its way through a graph: a node runs if a wanted value needs it and the cache has it not.

    Parameters
    ----------
    graph, keys
        Any valid graph and its :func:`~qbench.engine.keys.value_keys`.
    chunk
        What to feed.
    wanted
        Names of the values that `take` will ask for, as often as they stand here, in execution order.
    cache
        Where known values come from.
    keep
        Names of the values that go to the cache when they are made.
    """

    def __init__(
        self,
        graph: Graph,
        keys: dict[str, str],
        chunk: Chunk,
        wanted: Iterable[str],
        cache: ValueCache,
        keep: Container[str],
    ) -> None:
        self._graph, self._keys, self._cache, self._keep = graph, keys, cache, keep
        self._chunk = chunk.digest
        self._uses: Counter[str] = Counter(wanted)
        self._arrays: dict[str, Array] = dict(chunk.feeds)
        self._arrays |= {name: constant.array for name, constant in graph.constants.items()}
        self._kept = frozenset(self._arrays)  # held by others anyway: not worth freeing
        self._waiting = self._needed()
        self.steps: list[str] = []
        """Names of the nodes that ran."""

    def take(self, name: str) -> Array:
        """The array of a wanted value; it is freed here after as many calls as it was wanted times."""
        while name not in self._arrays:
            self._run(self._waiting.pop())
        array = self._arrays[name]
        self._used(name)
        return array

    def _needed(self) -> list[Node]:
        """The nodes that must run, last first; what the cache has of their inputs is fetched now, so that it stays."""
        waiting: list[Node] = []
        for node in reversed(self._graph.nodes):
            wanted = [name for name in node.outputs if self._uses[name]]
            known = {name: self._cache.get((self._keys[name], self._chunk)) for name in wanted}
            found = {name: array for name, array in known.items() if array is not None}
            self._arrays |= found
            if len(found) < len(wanted):
                waiting.append(node)
                self._uses.update(node.inputs)
        return waiting

    def _run(self, node: Node) -> None:
        results = step(self._graph, node, [self._arrays[name] for name in node.inputs])
        self.steps.append(node.name)
        for name, array in zip(node.outputs, results, strict=True):
            if name in self._keep:
                self._cache.put((self._keys[name], self._chunk), array)
            if self._uses[name]:
                self._arrays[name] = array
        for name in node.inputs:
            self._used(name)

    def _used(self, name: str) -> None:
        self._uses[name] -= 1
        if not self._uses[name] and name not in self._kept:
            del self._arrays[name]
