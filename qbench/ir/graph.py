"""The graph: a frozen, typed, named list of nodes in execution order."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from qbench.errors import GraphError, nearest, shown
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType

__all__ = ["Attr", "Graph", "Node"]

Attr = bool | int | float | str | None | tuple["Attr", ...]


class _Remembering:
    """Room beside a node's fields for what `qbench.ir.op.bind` made of them; no part of the node's value."""

    __slots__ = ("bound", "plain")


@dataclass(frozen=True, slots=True)
class Node(_Remembering):
    """One operation: its op's name, the values it reads, its attributes and the values it makes.

    Parameters
    ----------
    name
        Unique among the nodes of a graph; the source model's name where the node comes from there.
    op
        Dotted name of an op declaration, such as ``nn.conv2d``.
    inputs, outputs
        Names of values.
    attrs
        Only those that differ from the op's defaults need to be there.
    sources
        Names of the source-model nodes that this node was made from; a pass that merges nodes joins them.
    reason
        Why the node runs in float although its neighbours may not; empty where there is nothing to explain.
    """

    name: str
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: FrozenMap[str, Attr] = field(default_factory=FrozenMap[str, Attr])
    sources: tuple[str, ...] = ()
    reason: str = ""

    @property
    def output(self) -> str:
        """The one output; GraphError where there are several."""
        if len(self.outputs) != 1:
            raise GraphError(f"node {shown(self.name)} has {len(self.outputs)} outputs, not one")
        return self.outputs[0]


@dataclass(frozen=True)
class Graph:
    """A whole network. Make one with :func:`qbench.ir.build.build`, which infers the types and verifies.

    Parameters
    ----------
    name
        The model's name.
    inputs, outputs
        Names of values. Inputs are fed by the caller; every other value is a constant or made by one node.
    nodes
        In execution order.
    constants
        Weights and other arrays, by value name.
    types
        The type of every value: inputs, constants and node outputs.
    qparams
        What the integers of a value mean, for every quantized value (constants as well).
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    constants: FrozenMap[str, Constant]
    types: FrozenMap[str, TensorType]
    qparams: FrozenMap[str, QParams] = field(default_factory=FrozenMap[str, QParams])

    @cached_property
    def by_name(self) -> FrozenMap[str, Node]:
        """Nodes by their names."""
        return FrozenMap({node.name: node for node in self.nodes})

    @cached_property
    def producers(self) -> FrozenMap[str, Node]:
        """The node that makes each value (inputs and constants are not there)."""
        return FrozenMap({output: node for node in self.nodes for output in node.outputs})

    @cached_property
    def consumers(self) -> FrozenMap[str, tuple[Node, ...]]:
        """The nodes that read each value, in execution order; a node that reads it twice stands there once."""
        found: dict[str, list[Node]] = {name: [] for name in self.types}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                found[name].append(node)
        return FrozenMap({name: tuple(nodes) for name, nodes in found.items()})

    def node(self, name: str) -> Node:
        """The node of that name; GraphError with the nearest name where there is none."""
        if name not in self.by_name:
            raise GraphError(f"no node is called {shown(name)}{nearest(name, self.by_name)}")
        return self.by_name[name]

    def rebound(
        self, *, constants: Mapping[str, Constant] | None = None, qparams: Mapping[str, QParams] | None = None
    ) -> Graph:
        """The same nodes on other constants of the same names and types, or with other qparams of real values.

        Nothing is sorted, inferred or checked again; :func:`qbench.ir.build.rebuild` does that.
        """
        graph = dataclasses.replace(
            self,
            constants=self.constants if constants is None else FrozenMap(constants),
            qparams=self.qparams if qparams is None else FrozenMap(qparams),
        )
        indexes = {name: index for name, index in vars(self).items() if name in ("by_name", "producers", "consumers")}
        vars(graph).update(indexes)
        return graph

    def input_types(self) -> dict[str, TensorType]:
        """The types of the graph's inputs, by name."""
        return {name: self.types[name] for name in self.inputs}

    def activations(self) -> Iterator[str]:
        """Names of all values that depend on the input, in execution order: inputs, then node outputs."""
        yield from self.inputs
        for node in self.nodes:
            yield from node.outputs

    def __str__(self) -> str:
        from qbench.ir.printer import print_graph  # the printer reads graphs, so it is loaded only when asked for

        return print_graph(self, short=True)
