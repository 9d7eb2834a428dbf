"""From a graph to a program; and the programs of one graph, one for each set of sizes that it leaves open."""

import threading
from collections.abc import Iterable, Mapping

from qbench.ir.batch import batch_symbol
from qbench.ir.graph import Graph
from qbench.ir.op import Array
from qbench.ir.specialize import open_symbols
from qbench.kernels.levels import Level
from qbench.runtime.feeds import check_feeds
from qbench.runtime.planner import make_plan
from qbench.runtime.program import Program


def plan(
    graph: Graph,
    *,
    keep: Iterable[str] = (),
    sizes: Mapping[str, int] | None = None,
    level: Level | None = None,
) -> Program:
    """Plan a graph for this machine, see :func:`~qbench.runtime.planner.make_plan`."""
    return Program(**vars(make_plan(graph, keep=keep, sizes=sizes, level=level)))


_MANY = 64
"""Programs kept for one graph; constants are packed once for all of them, and kernels compiled once."""


class Programs:
    """Plans a graph when data of new sizes comes; safe to share between threads.

    Parameters
    ----------
    graph
        Any valid graph.
    keep
        As for :func:`~plan`.
    """

    def __init__(self, graph: Graph, keep: Iterable[str] = ()) -> None:
        self.graph, self.keep = graph, tuple(keep)
        self._batch = batch_symbol(graph)
        self._open = bool(open_symbols(graph) - {self._batch})
        self._planned: dict[frozenset[tuple[str, int]], Program] = {}
        self._lock = threading.Lock()

    def of(self, feeds: Mapping[str, Array]) -> Program:
        """The program for these feeds; DataError where their types do not fit the graph."""
        sizes = check_feeds(self.graph, feeds, finite=False) if self._open or self._batch is None else {}
        sizes = {symbol: size for symbol, size in sizes.items() if symbol != self._batch}
        key = frozenset(sizes.items())
        with self._lock:
            program = self._planned.pop(key, None) or plan(self.graph, keep=self.keep, sizes=sizes)
            self._planned[key] = program  # the latest last
            if len(self._planned) > _MANY:
                del self._planned[next(iter(self._planned))]
            return program
