"""Whose arithmetic a quantized graph was made for."""

from collections import Counter

from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.quant.semantics import SEMANTICS, Semantics, rounding_of


def semantics_of(graph: Graph) -> Semantics:
    """The arithmetic that most of a graph's nodes speak of: by name, or by how they round."""
    votes = Counter[Semantics]()
    for node in graph.nodes:
        op = bind(node, graph.qparams)
        named = node.attrs.get("semantics")
        rounding = str(getattr(op, "rounding", ""))
        for semantics in SEMANTICS:
            if named == semantics or (named is None and rounding.startswith(_FAMILIES[semantics])):
                votes[semantics] += 1
    return votes.most_common(1)[0][0] if votes else "tflite"


_FAMILIES: dict[Semantics, str] = {name: rounding_of(name, "qnn.conv2d").partition("_")[0] for name in SEMANTICS}
