"""Down-cast float32 nodes to float16."""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from qbench.errors import GraphError, nearest, shown
from qbench.ir.build import rebuild
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph, Node
from qbench.ir.names import claimed
from qbench.ir.op import QuantRule, bind
from qbench.passes.rewrite import attrs

Wide = Literal["float16", "float32"]

_LARGEST = float(np.finfo(np.float16).max)


@dataclass(frozen=True)
class Float16Pass:
    """Nodes on float32 values work on float16 instead; casts stand where they meet the rest.

    The graph's inputs and outputs stay float32. A value keeps its name where it is made; the cast of value ``t`` makes
    ``t.float16`` or ``t.float32``, and a graph output ``t`` is cast from ``t.float16``. Constants are converted; a node
    that reads one beyond float16's largest number, 65504, stays in float32 with that as its reason.

    Parameters
    ----------
    nodes
        Names of the nodes to convert; None means all. Casts, and the integer ops that passes make, stay as they are.
    """

    name: ClassVar[str] = "float16"
    nodes: frozenset[str] | None = None

    def __call__(self, graph: Graph) -> Graph:
        for name in self.nodes or ():
            if name not in graph.by_name:
                raise GraphError(f"float16: no node is called {shown(name)}{nearest(name, graph.by_name)}")
        large = {value for value, constant in graph.constants.items() if _overflows(constant)}
        half: set[str] = set()
        nodes: list[Node] = []
        for node in graph.nodes:
            if (self.nodes is None or node.name in self.nodes) and _becomes_half(graph, node):
                beyond = next((value for value in node.inputs if value in large), None)
                if beyond is None:
                    half.add(node.name)
                else:
                    reason = f"float16: constant {shown(beyond)} is beyond {_LARGEST:g}, the largest float16"
                    node = replace(node, reason=reason)
            nodes.append(node)
        if not half and tuple(nodes) == graph.nodes:
            return graph
        casting = _Casting(graph, half)
        for node in nodes:
            casting.add(node)
        return rebuild(graph, nodes=casting.nodes, constants=casting.constants)


class _Casting:
    """The graph as it grows: which names each value has in float16 and in float32."""

    def __init__(self, graph: Graph, half: set[str]) -> None:
        self.nodes: list[Node] = []
        self.constants = dict(graph.constants)
        self._graph, self._half = graph, half
        self._fresh = partial(claimed, taken={*graph.types, *graph.by_name})
        self._names: dict[tuple[str, Wide], str] = {}
        for value in (*graph.inputs, *graph.constants):
            self._names[value, "float32"] = value

    def add(self, node: Node) -> None:
        """Add a node, in float16 if it is to be, with the casts that it needs."""
        wide: Wide = "float16" if node.name in self._half else "float32"
        inputs = tuple(self._cast(value, wide) for value in node.inputs)
        outputs = tuple(
            self._fresh(f"{value}.float16") if self._is_cast_after(node, value) else value for value in node.outputs
        )
        self.nodes.append(replace(node, inputs=inputs, outputs=outputs))
        for value, made in zip(node.outputs, outputs, strict=True):
            self._names[value, wide] = made
            if made != value:
                self._names[value, "float32"] = value
                self.nodes.append(_cast_node(self._fresh(f"{node.name}.float32"), made, value, "float32", node))

    def _is_cast_after(self, node: Node, value: str) -> bool:
        graph = self._graph
        return node.name in self._half and value in graph.outputs and graph.types[value].dtype == "float32"

    def _cast(self, value: str, wide: Wide) -> str:
        if self._graph.types[value].dtype != "float32":
            return value
        if (value, wide) not in self._names:
            name = self._fresh(f"{value}.{wide}")
            if value in self.constants:
                name = self._halve(value, name)
            else:
                given = self._names[value, "float16" if wide == "float32" else "float32"]
                producer = self._graph.producers.get(value)
                self.nodes.append(_cast_node(name, given, name, wide, producer))
            self._names[value, wide] = name
        return self._names[value, wide]

    def _halve(self, value: str, name: str) -> str:
        """A constant in float16: under its own name if nothing needs it in float32."""
        only = value not in self._graph.outputs and all(n.name in self._half for n in self._graph.consumers[value])
        name = value if only else name
        self.constants[name] = Constant(self._graph.constants[value].array.astype(np.float16))
        return name


def _cast_node(name: str, value: str, output: str, dtype: Wide, of: Node | None) -> Node:
    return Node(name, "cast", (value,), (output,), attrs(dtype=dtype), sources=of.sources if of is not None else ())


def _overflows(constant: Constant) -> bool:
    if constant.dtype != "float32" or not constant.array.size:
        return False
    sizes = np.abs(constant.array)
    return bool(np.any(np.isfinite(sizes) & (sizes.astype(np.float64) >= _LARGEST + 16)))  # 65520 rounds to infinity


def _becomes_half(graph: Graph, node: Node) -> bool:
    """Whether float32 goes in, and none comes out once float16 goes in instead."""
    op = bind(node, graph.qparams)
    types = tuple(graph.types[value] for value in node.inputs)
    if op.rule is QuantRule.INTERNAL or node.op == "cast" or all(t.dtype != "float32" for t in types):
        return False
    halved = tuple(t.with_dtype("float16") if t.dtype == "float32" else t for t in types)
    return all(t.dtype != "float32" for t in op.infer_all(halved))
