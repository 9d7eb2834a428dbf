"""Compute the same thing once."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph, Node
from qbench.passes.rewrite import Rewriter, joined_sources


@dataclass(frozen=True)
class CommonSubexpressionsPass:
    """Of nodes with the same op, attributes and inputs only the first stays; it gets the sources of the others.

    Constants count as the same input where they are equal bit for bit. Two graph outputs that are equal stay two nodes:
    both names must survive. By value numbering (Cocke and Schwartz, 1970): equal values get equal numbers.
    """

    name: ClassVar[str] = "common-subexpressions"

    def __call__(self, graph: Graph) -> Graph:
        rw = Rewriter(graph)
        numbers: dict[str, Hashable] = _constant_numbers(graph)
        first: dict[Hashable, str] = {}
        for node in rw:
            key = (rw.op(node), tuple(numbers.get(value, value) for value in node.inputs))
            earlier = first.setdefault(key, node.name)
            numbers.update({value: (earlier, index) for index, value in enumerate(node.outputs)})
            if earlier != node.name:
                _merge(rw, node, rw.node(earlier))
        return rw.finish()


def _merge(rw: Rewriter, node: Node, into: Node) -> None:
    if len(node.outputs) == 1:
        rw.bypass(node, into.output)
    elif set(node.outputs).isdisjoint(rw.outputs):
        for value, kept in zip(node.outputs, into.outputs, strict=True):
            rw.redirect(value, kept)
        rw.remove(node)
        rw.update(into, sources=joined_sources(into, node))


def _constant_numbers(graph: Graph) -> dict[str, Hashable]:
    """The first equal constant's name, by name. Digests are taken only of those that a glance cannot tell apart."""
    alike: dict[Hashable, list[str]] = {}
    for name, constant in graph.constants.items():
        alike.setdefault(_glance(graph, name, constant), []).append(name)
    numbers: dict[str, Hashable] = {}
    for names in alike.values():
        for name in names if len(names) > 1 else ():
            numbers[name] = (graph.constants[name], graph.qparams.get(name))
    return numbers


def _glance(graph: Graph, name: str, constant: Constant) -> Hashable:
    return constant.dtype, constant.shape, constant.array.reshape(-1)[:16].tobytes(), graph.qparams.get(name)
