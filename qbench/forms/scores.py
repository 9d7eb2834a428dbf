"""What a softmax is about to compare, and which of it a mask has hidden."""

from collections.abc import Callable
from itertools import chain

from qbench.ir.graph import Graph, Node
from qbench.ir.op import OPS, QuantRule, is_op
from qbench.ops.float.softmax import LogSoftmax, Softmax

HIDDEN = -5000.0
"""A score up to this was hidden: masks add -10,000 or less, and next to any other score the softmax makes it 0."""


def is_softmax(node: Node) -> bool:
    """Whether a node compares scores."""
    return is_op(node, Softmax, LogSoftmax)


def read_only_by(graph: Graph, is_wanted: Callable[[Node], bool]) -> set[str]:
    """The values that only certain nodes read, straight or through elementwise ones; no outputs."""
    found: set[str] = set()
    for value in chain((name for node in reversed(graph.nodes) for name in node.outputs), graph.inputs):
        readers = graph.consumers[value]
        if readers and value not in graph.outputs and all(is_wanted(one) or _passes(one, found) for one in readers):
            found.add(value)
    return found


def floors(graph: Graph) -> dict[str, float]:
    """By value that only a softmax reads: up to where elements were hidden by a mask, and count nowhere."""
    return dict.fromkeys(read_only_by(graph, is_softmax), HIDDEN)


def _passes(node: Node, found: set[str]) -> bool:
    rule = OPS[node.op].rule if node.op in OPS else None
    return rule == QuantRule.ELEMENTWISE and node.outputs[0] in found
