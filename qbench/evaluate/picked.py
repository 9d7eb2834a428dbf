"""What outputs are judged by where they are lists of the best, in which two change places by a small error."""

from collections.abc import Sequence

from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph, Node
from qbench.ir.op import OPS


def picking(graph: Graph) -> tuple[Node, ...]:
    """The nodes that pick by real numbers which the network computes: what it is fed is the same in all networks."""
    picks = (node for node in graph.nodes if OPS[node.op].picks)
    return tuple(node for node in picks if any(name not in graph.inputs for name in _real(graph, node)))


def picked_from(graph: Graph) -> tuple[str, ...]:
    """What the nodes that pick go by."""
    return tuple(dict.fromkeys(name for node in picking(graph) for name in _real(graph, node)))


def picked(graph: Graph) -> frozenset[str]:
    """The values that depend on what was picked."""
    found = {name for node in picking(graph) for name in node.outputs}
    if found:
        for node in graph.nodes:
            if found.intersection(node.inputs):
                found.update(node.outputs)
    return frozenset(found)


def judged(graph: Graph) -> tuple[str, ...]:
    """The values by which a network's outputs are compared: the outputs, or what those are picked from.

    That is what picking goes by, and all other real numbers that meet what was picked. Numbers and truth values beside
    real ones do not count: one of few that changes says nothing in decibels.
    """
    after = picked(graph)
    if not after:
        return _before_others(graph, graph.outputs)
    meeting = (name for node in graph.nodes if after.issuperset(node.outputs) for name in _real(graph, node))
    wanted = dict.fromkeys((*(name for name in graph.outputs if name not in after), *meeting))
    return _before_others(graph, [name for name in wanted if name not in after])


def compared(graph: Graph) -> tuple[str, ...]:
    """The outputs, which metrics are about, and what those are judged by."""
    return tuple(dict.fromkeys((*graph.outputs, *judged(graph))))


def _before_others(graph: Graph, names: Sequence[str]) -> tuple[str, ...]:
    """Those of real numbers; all where none is."""
    return tuple(name for name in names if is_float(graph.types[name].dtype)) or tuple(names)


def _real(graph: Graph, node: Node) -> list[str]:
    return [name for name in node.inputs if name not in graph.constants and is_float(graph.types[name].dtype)]
