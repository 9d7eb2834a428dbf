"""Which open size counts samples: those that can be computed one by one."""

from collections.abc import Callable, Mapping

from qbench.ir.graph import Graph, Node
from qbench.ir.op import OPS, Op, bind
from qbench.ir.open_attributes import with_sizes
from qbench.ir.sizes import size_of
from qbench.ir.types import TensorType, dim_factors, dim_product


def batch_symbol(graph: Graph) -> str | None:
    """The symbol that counts samples, where there is one: axis 0 of every input and output is a multiple of it.

    All other sizes must be free of it, or multiples too, so that a sample by itself has the sizes for 1; and no node
    may compute with it, nor with several samples at once: then it counts steps of time, or nodes of a network.
    """
    known = vars(graph)  # where a graph keeps its indexes
    if _FOUND not in known:
        known[_FOUND] = _find(graph)
    return known[_FOUND]


_FOUND = "_batch_symbol"


def _find(graph: Graph) -> str | None:
    values = [*graph.inputs, *(name for name in graph.outputs if name not in graph.constants)]
    leading = [graph.types[name].shape[:1] for name in values]
    symbols = {dim_factors(dims[0])[1] if dims else None for dims in leading}
    symbol = symbols.pop() if len(symbols) == 1 else None
    if symbol is None or not symbol.isidentifier():
        return None
    if any(with_sizes(node, {symbol: 1}) is not node and not OPS[node.op].only_shaped for node in graph.nodes):
        return None
    dims = {dim for kind in graph.types.values() for dim in kind.shape if isinstance(dim, str)}
    if not all(map(_multiple(symbol), dims)):
        return None
    places = {name: _places(kind, symbol) for name, kind in graph.types.items()}
    alone = all(len(found) <= 1 for found in places.values())
    return symbol if alone and all(_keeps_apart(graph, node, places) for node in graph.nodes) else None


def _multiple(symbol: str) -> Callable[[str], bool]:
    def fits(dim: str) -> bool:
        size = size_of(dim)
        if symbol not in size.symbols:
            return True
        within = any(symbol in part.symbols for q in size.quotients for part in (q.above, q.below))
        return not within and all((symbol, 1) in monomial for monomial, _ in size.terms)

    return fits


def _places(kind: TensorType, symbol: str) -> list[int]:
    """The axes along which a value has something for each sample."""
    return [axis for axis, dim in enumerate(kind.shape) if isinstance(dim, str) and symbol in size_of(dim).symbols]


def _keeps_apart(graph: Graph, node: Node, places: Mapping[str, list[int]]) -> bool:
    """Whether what a node makes for a sample depends on what it reads for that sample alone."""
    op = bind(node, graph.qparams)
    read = {name: places[name][0] for name in node.inputs if places[name]}
    made = {name: places[name][0] for name in node.outputs if places[name]}
    if not read or (op.elementwise and op.samples is not None):
        return True
    if op.samples is None or len(made) < len(node.outputs):
        return False
    if op.keeps_order:
        ends = [dim_product(graph.types[name].shape[:at]) for name, at in (read | made).items()]
        return len({*ends}) == 1
    first = node.inputs[0]
    rank = graph.types[first].rank
    axes = _worked_along(op, rank)
    if axes is not None:
        if first not in read:  # a table: samples are in the indices
            return True
        alike = all(graph.types[name].rank == rank and at == read[first] for name, at in read.items())
        return alike and read[first] not in axes
    if op.has_weight() and op.channels.data == -1:
        return read.get(first, 0) < rank - 1
    sizes = {graph.types[name].shape[at] for name, at in (read | made).items()}
    return {*read.values()} == {op.samples} and len(sizes) == 1


def _worked_along(op: Op, rank: int) -> set[int] | None:
    """The axes along which elements are joined, moved or compared; None where the op names none."""
    axis, axes = getattr(op, "axis", None), getattr(op, "axes", None)
    if isinstance(axis, int):
        return {axis % rank} if rank else None
    if not isinstance(axes, tuple):
        return None
    named = [int(number) % rank for number in axes]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    steps: tuple[int, ...] | None = getattr(op, "strides", None)
    if steps is not None:  # of a slice: one that takes all does not change a size
        return {at for at, step in zip(named, steps, strict=True) if step != 1}
    return set() if op.moves else {*named}
