"""What a graph of known sizes makes of constants alone is computed while it is planned."""

from collections.abc import Collection
from dataclasses import replace

from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.open_attributes import is_open
from qbench.runtime import interpreter


def fold(graph: Graph, keep: Collection[str]) -> Graph:
    """The graph with constants in place of nodes that read nothing else; those that make what is kept stay."""
    constants, left = dict(graph.constants), list[Node]()
    for node in graph.nodes:
        known = not is_open(node) and all(name in constants for name in node.inputs)
        if known and not any(name in keep for name in node.outputs):
            made = interpreter.step(graph, node, tuple(constants[name].array for name in node.inputs))
            constants.update(zip(node.outputs, map(Constant, made), strict=True))
        else:
            left.append(node)
    if len(left) == len(graph.nodes):
        return graph
    return replace(graph, nodes=tuple(left), constants=FrozenMap(constants))
