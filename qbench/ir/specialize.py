"""A graph with every size known: one sample where the batch is open."""

from collections.abc import Mapping

from qbench.errors import DataError, GraphError, shown
from qbench.ir.build import build
from qbench.ir.graph import Graph
from qbench.ir.open_attributes import with_sizes
from qbench.ir.sizes import size_of
from qbench.ir.types import Dim, TensorType, dims_replaced


def open_symbols(graph: Graph) -> frozenset[str]:
    """The symbols of the sizes that the inputs leave open."""
    return frozenset[str]().union(*(size_of(dim).symbols for t in graph.input_types().values() for dim in t.shape))


def sized(graph: Graph, sizes: Mapping[str, int]) -> Graph:
    """The same graph with numbers in place of those open sizes that have one: what estimates of time and memory ask."""
    opened = open_symbols(graph)
    if opened.isdisjoint(sizes):
        return graph
    known = vars(graph)  # where a graph keeps its indexes
    if _SIZED not in known or known[_SIZED][0] != sizes:
        known[_SIZED] = dict(sizes), specialize(graph, {symbol: sizes.get(symbol, symbol) for symbol in opened})
    return known[_SIZED][1]


_SIZED = "_sized"


def specialize(graph: Graph, sizes: Mapping[str, Dim]) -> Graph:
    """The same graph with numbers in place of symbols.

    Parameters
    ----------
    graph
        Any graph.
    sizes
        What stands for each symbol of the inputs' shapes: a number, or the symbol itself where it stays open.

    Raises
    ------
    GraphError
        A symbol that has no number; it names the input.
    DataError
        Numbers with which the graph makes no sense.
    """
    missing = sorted(open_symbols(graph) - sizes.keys())
    for name, kind in graph.input_types().items():
        for dim in kind.shape:
            if not size_of(dim).symbols.isdisjoint(missing):
                wanted = ", ".join(f"'{symbol}': ..." for symbol in missing)
                raise GraphError(f"input {shown(name)} has the open size {dim}; give numbers: sizes={{{wanted}}}")
    changed = {symbol: size for symbol, size in sizes.items() if size != symbol}
    if open_symbols(graph).isdisjoint(changed):
        return graph
    try:
        inputs = {n: TensorType(dims_replaced(t.shape, sizes), t.dtype) for n, t in graph.input_types().items()}
        nodes = [with_sizes(node, sizes) for node in graph.nodes]
        return build(graph.name, inputs, graph.outputs, nodes, graph.constants, graph.qparams)
    except GraphError as error:
        told = ", ".join(f"{symbol}={size}" for symbol, size in changed.items())
        raise DataError(f"the model does not take the sizes {told}: {error}") from error
