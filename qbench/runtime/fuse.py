"""Which nodes run as one step: a product or sum with the bias, requantize and clamps that follow it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from qbench.ir.graph import Graph, Node

__all__ = ["CLAMPS", "REQUANTIZES", "Fused", "fuse"]

REQUANTIZES = frozenset(
    {"integer.requantize", "integer.requantize_float32", "integer.requantize_float64", "integer.rounding_shift"}
)
CLAMPS = frozenset({"clip", "nn.relu"})
_BIAS = frozenset({"nn.bias_add"})

_FOLLOWERS: dict[str, tuple[frozenset[str], ...]] = {
    **dict.fromkeys(("integer.conv2d", "integer.dense", "integer.batch_matmul"), (_BIAS, REQUANTIZES, CLAMPS)),
    **dict.fromkeys(("integer.multiply", "integer.sum", "integer.sum_pool2d"), (REQUANTIZES, CLAMPS)),
    **dict.fromkeys(
        ("integer.add", "integer.add_float32", "integer.add_fused", "integer.tflite_add", *REQUANTIZES), (CLAMPS,)
    ),
    **dict.fromkeys(("integer.tflite_avg_pool2d", "integer.tflite_mean"), (CLAMPS,)),
    **dict.fromkeys(("nn.conv2d", "nn.dense", "nn.batch_matmul"), (_BIAS, CLAMPS)),
    **dict.fromkeys(("add", "subtract", "multiply", "nn.bias_add"), (CLAMPS,)),
}
"""What may follow a node within its step, in this order: one bias, one requantize, any number of clamps."""


@dataclass(frozen=True)
class Fused:
    """Nodes that run as one step, each but the first reading what the one before it made.

    Parameters
    ----------
    nodes
        In execution order.
    """

    nodes: tuple[Node, ...]

    @property
    def head(self) -> Node:
        """The node that the others follow."""
        return self.nodes[0]

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the values that the step makes."""
        return self.nodes[-1].outputs

    def follower(self, ops: Collection[str]) -> Node | None:
        """The first node after the head with one of these ops."""
        return next((node for node in self.nodes[1:] if node.op in ops), None)

    def followers(self, ops: Collection[str]) -> tuple[Node, ...]:
        """All nodes after the head with one of these ops."""
        return tuple(node for node in self.nodes[1:] if node.op in ops)

    def inputs(self, graph: Graph) -> tuple[str, ...]:
        """Names of the values that the step reads: no constants, nothing made inside, each name once."""
        inside = {name for node in self.nodes for name in node.outputs}
        read = dict.fromkeys(name for node in self.nodes for name in node.inputs)
        return tuple(name for name in read if name not in inside and name not in graph.constants)


def fuse(graph: Graph, keep: Collection[str] = ()) -> tuple[Fused, ...]:
    """Group the nodes of a graph into steps, in an order in which they can run.

    Parameters
    ----------
    graph
        Any graph.
    keep
        Values that must come out of a step: nothing is fused behind them. The graph's outputs always do.
    """
    visible = {*graph.outputs, *keep}
    taken: set[str] = set()
    steps: dict[str, Fused] = {}  # by the name of the last node
    for node in graph.nodes:
        if node.name not in taken:
            chain = _chain(graph, node, visible)
            taken.update(member.name for member in chain)
            steps[chain[-1].name] = Fused(chain)
    return tuple(steps[node.name] for node in graph.nodes if node.name in steps)


def _chain(graph: Graph, head: Node, visible: Collection[str]) -> tuple[Node, ...]:
    chain = [head]
    stages = list(_FOLLOWERS.get(head.op, ()))
    while stages:
        follower = _only_follower(graph, chain[-1], visible)
        if follower is None:
            break
        while stages and follower.op not in stages[0]:
            del stages[0]
        if stages:
            chain.append(follower)
            if stages[0] is not CLAMPS:
                del stages[0]
    return tuple(chain)


def _only_follower(graph: Graph, node: Node, visible: Collection[str]) -> Node | None:
    """The one node that reads what a node makes, if its other operands are constants."""
    value = node.outputs[0]
    consumers = graph.consumers[value]
    if value in visible or len(consumers) != 1 or consumers[0].inputs[0] != value:
        return None
    others = consumers[0].inputs[1:]
    return consumers[0] if all(name in graph.constants for name in others) else None
