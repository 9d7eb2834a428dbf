"""Remove the nodes that no output depends on."""

from dataclasses import dataclass
from typing import ClassVar

from qbench.ir.build import rebuild
from qbench.ir.graph import Graph, Node


@dataclass(frozen=True)
class DeadCodePass:
    """Keep only the nodes that a graph output depends on. Inputs stay, used or not: they are the caller's contract."""

    name: ClassVar[str] = "dead-code"

    def __call__(self, graph: Graph) -> Graph:
        live = set(graph.outputs)
        kept: list[Node] = []
        for node in reversed(graph.nodes):
            if not live.isdisjoint(node.outputs):
                kept.append(node)
                live.update(node.inputs)
        return graph if len(kept) == len(graph.nodes) else rebuild(graph, nodes=reversed(kept))
