"""From a graph to a program; and the programs of one graph, one for each set of sizes that it leaves open."""

import threading
from collections.abc import Iterable, Mapping

from qbench.ir.batch import batch_symbol
from qbench.ir.graph import Graph
from qbench.ir.op import OPS, Array
from qbench.ir.specialize import open_symbols, specialize
from qbench.ir.types import numel
from qbench.kernels.levels import Level
from qbench.ops.products import macs
from qbench.runtime.feeds import check_feeds
from qbench.runtime.plan import Plan
from qbench.runtime.planner import make_plan
from qbench.runtime.program import TOGETHER, Program


def plan(
    graph: Graph,
    *,
    keep: Iterable[str] = (),
    sizes: Mapping[str, int] | None = None,
    level: Level | None = None,
) -> Program:
    """Plan a graph for this machine, see :func:`~qbench.runtime.planner.make_plan`."""
    made, symbol = make_plan(graph, keep=keep, sizes=sizes, level=level), batch_symbol(graph)
    if symbol is None or symbol in (sizes or {}) or not _reads_weights_for_one_row(made.single):
        return Program(**vars(made))

    def of_several() -> Plan:
        several = specialize(graph, {symbol: f"{TOGETHER}*{symbol}", **{s: s for s in open_symbols(graph) - {symbol}}})
        return make_plan(several, sizes=sizes, level=level)

    return Program(**vars(made), plan_of_several=of_several)


def _reads_weights_for_one_row(graph: Graph) -> bool:
    """Whether most products of one sample are of a single row with weights: then several share each pass over them."""
    alone = every = 0
    for node in graph.nodes:
        products, rows = macs(graph, node), numel(graph.types[node.outputs[0]].shape[:-1])
        every += products
        alone += products if rows == 1 and OPS[node.op].has_weight() and node.inputs[1] in graph.constants else 0
    return 2 * alone > every


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
