"""Parts of normalizations that no single op stands for: means of squares, their roots, what is divided by them."""

from collections.abc import Iterable

from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.op import OPS, is_op
from qbench.ops.float.elementwise import Divide, Multiply, Subtract
from qbench.ops.float.reduce import Mean, Sum
from qbench.ops.float.unary import STEEP

_REASON = "default: normalization keeps float32 inside"
_STEEP = "default: 8 bits near zero are too few for {name}"


def norm_parts(graph: Graph) -> FrozenMap[str, str]:
    """The nodes that must not be cut into 8 bits whatever their ranges are, each with the reason.

    A mean of squares that is rounded to zero makes NaN of what is divided by its root: squares that are summed or
    averaged stay in float, what is squared too where a mean was taken off it, and so do functions that are steep at 0.
    """
    found: dict[str, str] = {}
    for node in graph.nodes:
        if OPS[node.op] in STEEP:
            found[node.name] = _STEEP.format(name=node.op)
        if is_op(node, Mean, Sum):
            square = _before(graph, node.inputs[0])
            if square is not None and is_op(square, Multiply) and square.inputs[0] == square.inputs[1]:
                centred = _before(graph, square.inputs[0])
                parts = (node, square, centred) if centred is not None and is_op(centred, Subtract) else (node, square)
                found |= dict.fromkeys(_names(parts), _REASON)
    return FrozenMap(found)


def divisors(graph: Graph) -> FrozenMap[str, str]:
    """The values that others are divided by, however moved: rounded to zero, they would make NaN or infinity."""
    found: dict[str, str] = {}
    for node in graph.nodes:
        if is_op(node, Divide):
            value = node.inputs[1]
            while value not in graph.constants:
                found[value] = f"default: {node.name!r} divides by {value!r}, which must not be rounded to zero"
                maker = graph.producers.get(value)
                if maker is None or not OPS[maker.op].moves or len(maker.inputs) > 1:
                    break
                value = maker.inputs[0]
    return FrozenMap(found)


def _before(graph: Graph, value: str) -> Node | None:
    """What computes a value, behind ops that only move it."""
    node = graph.producers.get(value)
    while node is not None and OPS[node.op].moves:
        node = graph.producers.get(node.inputs[0])
    return node


def _names(nodes: Iterable[Node]) -> list[str]:
    return [node.name for node in nodes]
