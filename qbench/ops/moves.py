"""Values that are only moved: where they come from."""

from collections.abc import Iterator

from qbench.ir.graph import Graph
from qbench.ir.op import OPS, QuantRule


def moved_from(graph: Graph, value: str) -> Iterator[str]:
    """A value, then what it is moved from, and so on: all have the same numbers, or some of them.

    Parameters
    ----------
    graph
        Any graph.
    value
        A name in it.

    Yields
    ------
    str
        Names of values, the last one made by an op that does more than move, a constant or an input of the graph.
    """
    yield value
    while (maker := graph.producers.get(value)) is not None and OPS[maker.op].rule == QuantRule.SAME:
        value = maker.inputs[0]
        yield value
