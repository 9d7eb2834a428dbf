"""A graph with every size known: one sample where the batch is open."""

from __future__ import annotations

from collections.abc import Mapping

from qbench.errors import GraphError, shown
from qbench.ir.build import build
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.op import bind
from qbench.ir.types import Dim, TensorType, dim_factors, dim_product
from qbench.ops.float.reshape import Reshape

__all__ = ["batch_symbol", "specialize"]


def batch_symbol(graph: Graph) -> str | None:
    """The symbol that axis 0 of every input and output is a multiple of, where there is one: it counts samples."""
    values = [*graph.inputs, *(name for name in graph.outputs if name not in graph.constants)]
    leading = [graph.types[name].shape[:1] for name in values]
    symbols = {dim_factors(dims[0])[1] if dims else None for dims in leading}
    return symbols.pop() if len(symbols) == 1 else None


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
    """
    symbols = {dim_factors(dim)[1] for name in graph.inputs for dim in graph.types[name].shape} - {None}
    if all(sizes.get(symbol or "") == symbol for symbol in symbols):
        return graph

    def number(dim: Dim, name: str) -> Dim:
        factor, symbol = dim_factors(dim)
        if symbol is not None and symbol not in sizes:
            raise GraphError(
                f"input {shown(name)} has the open size {symbol}; give it a number: sizes={{'{symbol}': ...}}"
            )
        return dim_product((factor, sizes[symbol] if symbol else 1))

    inputs = {
        name: TensorType(tuple(number(dim, name) for dim in graph.types[name].shape), graph.types[name].dtype)
        for name in graph.inputs
    }
    nodes = [_numbered(node, sizes) for node in graph.nodes]
    return build(graph.name, inputs, graph.outputs, nodes, graph.constants, graph.qparams)


def _replaced(dim: str, sizes: Mapping[str, Dim]) -> Dim:
    factor, symbol = dim_factors(dim)
    return dim_product((factor, sizes.get(symbol or "", dim)))


def _numbered(node: Node, sizes: Mapping[str, Dim]) -> Node:
    """Symbols may stand in the attribute that gives a reshape its new shape."""
    if node.op != Reshape.name:
        return node
    op = bind(node)
    assert isinstance(op, Reshape)
    numbers: Attr = tuple(_replaced(dim, sizes) if isinstance(dim, str) else dim for dim in op.newshape)
    return Node(
        node.name,
        node.op,
        node.inputs,
        node.outputs,
        FrozenMap({**node.attrs, "newshape": numbers}),
        node.sources,
        node.reason,
    )
