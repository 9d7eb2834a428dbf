"""A graph with every size known: one sample where the batch is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qbench.errors import DataError, GraphError, shown
from qbench.ir.build import build
from qbench.ir.graph import Graph
from qbench.ir.op import OPS, with_sizes
from qbench.ir.sizes import size_of
from qbench.ir.types import Dim, TensorType, dim_factors, dims_replaced

__all__ = ["batch_symbol", "open_symbols", "specialize"]


def open_symbols(graph: Graph) -> frozenset[str]:
    """The symbols of the sizes that the inputs leave open."""
    return frozenset[str]().union(*(size_of(dim).symbols for t in graph.input_types().values() for dim in t.shape))


def batch_symbol(graph: Graph) -> str | None:
    """The symbol that counts samples, where there is one: axis 0 of every input and output is a multiple of it.

    All other sizes must be free of it, or multiples too, so that a sample by itself has the sizes for 1; and no node
    may compute with it, or with all samples together.
    """
    values = [*graph.inputs, *(name for name in graph.outputs if name not in graph.constants)]
    leading = [graph.types[name].shape[:1] for name in values]
    symbols = {dim_factors(dims[0])[1] if dims else None for dims in leading}
    symbol = symbols.pop() if len(symbols) == 1 else None
    if symbol is None or not symbol.isidentifier():
        return None
    if any(with_sizes(node, {symbol: 1}) is not node and not OPS[node.op].only_shaped for node in graph.nodes):
        return None
    if any(OPS[node.op].whole for node in graph.nodes):
        return None
    dims = {dim for kind in graph.types.values() for dim in kind.shape if isinstance(dim, str)}
    return symbol if all(map(_multiple(symbol), dims)) else None


def _multiple(symbol: str) -> Callable[[str], bool]:
    def fits(dim: str) -> bool:
        size = size_of(dim)
        if symbol not in size.symbols:
            return True
        within = any(symbol in part.symbols for q in size.quotients for part in (q.above, q.below))
        return not within and all((symbol, 1) in monomial for monomial, _ in size.terms)

    return fits


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
    for name, kind in graph.input_types().items():
        for dim in kind.shape:
            for symbol in sorted(size_of(dim).symbols - sizes.keys()):
                raise GraphError(
                    f"input {shown(name)} has the open size {symbol}; give it a number: sizes={{'{symbol}': ...}}"
                )
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
