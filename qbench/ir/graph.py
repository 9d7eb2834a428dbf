"""The graph: a frozen, typed, named list of nodes in execution order; and its text.

The text has Relay's look, and is complete enough that :func:`qbench.ir.parser.parse_graph` gives the same graph back.

    def @mnist(%x: Tensor[(N, 784), float32]) -> Tensor[(N, 512), uint8] uint8(scale=0.02, zero_point=3) {
      %fc1 = qnn.dense(%x, @fc1.weight);  // Tensor[(N, 512), uint8] uint8(scale=0.02, zero_point=3), sources=("a", "b")
      %fc1
    }
    @fc1.weight: Tensor[(512, 784), int8] int8(scale=(...), zero_point=0, axis=0);

``%`` marks what depends on the input, ``@`` constants. After ``//`` stands what the values are: type, qparams, then the
node's name where it is not the first value's, its sources where they are not just the name, and its reason.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np

from qbench.errors import GraphError, check_kind, nearest, shown
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.qparams import EXACT_SCALES, QParams
from qbench.ir.types import TensorType

BARE = r"[A-Za-z0-9_./-]+(?::[A-Za-z0-9_./-]+)*"
"""Names that need no quotes."""
SHORT = "# short form"
"""The start of the line by which the parser knows text that is for reading only."""
_BARE = re.compile(BARE)
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_WIDEST = 72
_LONGEST_NAME = 100

Number = TypeVar("Number", int, float)

Attr = bool | int | float | str | None | tuple["Attr", ...]


class _Remembering:
    """Room beside a node's fields for what `qbench.ir.op.bind` made of them, and for their hash, which holds in this
    process; no part of the node's value."""

    __slots__ = ("bound", "hashed", "plain")


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

    def __hash__(self) -> int:
        known: int | None = getattr(self, "hashed", None)
        if known is None:
            known = hash((self.name, self.op, self.inputs, self.outputs, self.attrs, self.sources, self.reason))
            object.__setattr__(self, "hashed", known)
        return known

    @property
    def output(self) -> str:
        """The one output; GraphError where there are several."""
        if len(self.outputs) != 1:
            raise GraphError(f"node {shown(self.name)} has {len(self.outputs)} outputs, not one")
        return self.outputs[0]

    def renamed(self, names: Mapping[str, str]) -> Node:
        """The node with other names of values that it reads and makes."""
        inputs, outputs = (tuple(names.get(value, value) for value in each) for each in (self.inputs, self.outputs))
        return dataclasses.replace(self, inputs=inputs, outputs=outputs)


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
    file
        What the file that it was read from is called, without its ending; no part of what the graph is.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[Node, ...]
    constants: FrozenMap[str, Constant]
    types: FrozenMap[str, TensorType]
    qparams: FrozenMap[str, QParams] = field(default_factory=FrozenMap[str, QParams])
    file: str = field(default="", compare=False)

    @property
    def title(self) -> str:
        """What people call it: as its file, since exporters give all models one name; else its name."""
        return self.file or self.name

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
        """The names of all values that depend on the input, in execution order: inputs, then node outputs."""
        yield from self.inputs
        for node in self.nodes:
            yield from node.outputs

    def __str__(self) -> str:
        return print_graph(self, short=True)


def check_graph(graph: object) -> None:
    """Raise GraphError for what is no graph."""
    check_kind(graph, Graph, GraphError, "a graph is wanted, not {}: qbench.load(path) reads one, session.graph is one")


def print_graph(graph: Graph, *, short: bool = False) -> str:
    """The graph as text.

    Parameters
    ----------
    graph
        Any graph.
    short
        For reading: scales have 4 digits, those along an axis are a range, zero points of 0 are left out of signed
        types, sources everywhere, and names of more than 100 characters are cut. The parser refuses such text. Without
        `short` the text is exact.
    """
    inputs = ", ".join(f"{_ref(graph, name, short)}: {_value(graph, name, short)}" for name in graph.inputs)
    outputs = [_value(graph, name, short) for name in graph.outputs]
    results = [_ref(graph, name, short) for name in graph.outputs]
    codes = [_code(graph, node, short) for node in graph.nodes]
    width = min(max(map(len, codes), default=0), _WIDEST)
    lines = [f"def @{_name(graph.name, short)}({inputs}) -> {_one_or_tuple(outputs)} {{"]
    for node, code in zip(graph.nodes, codes, strict=True):
        lines.append(f"  {code:{width}}  // {_note(graph, node, short)}")
    lines += [f"  {_one_or_tuple(results)}", "}"]
    lines += [value_line(graph, name, short=short) for name in graph.constants]
    lines += [f"{SHORT}; print_graph(graph) gives the exact text"] if short else []
    return "\n".join(lines) + "\n"


def print_node(graph: Graph, node: Node) -> str:
    """The short line of one node; types and qparams that the graph lacks are left out."""
    return f"{_code(graph, node, True)}  // {_note(graph, node, True)}"


def value_line(graph: Graph, name: str, *, short: bool = False) -> str:
    """The line that declares an input or a constant."""
    return f"{_ref(graph, name, short)}: {_value(graph, name, short)};"


def print_qparams(qparams: QParams, *, short: bool = False) -> str:
    """``int8(scale=0.5, zero_point=0)``; scales in their shortest exact form, equal zero points written once."""
    if short:
        return _short_qparams(qparams)
    exact = qparams.dtype in EXACT_SCALES
    scales = [repr(scale) if exact else str(np.float32(scale)) for scale in qparams.scales]
    zero_points = [str(zero_point) for zero_point in qparams.zero_points]
    if qparams.axis is None:
        return f"{qparams.dtype}(scale={scales[0]}, zero_point={zero_points[0]})"
    scale = _items(scales)
    zero_point = zero_points[0] if len(set(zero_points)) == 1 else _items(zero_points)
    block = "" if qparams.block is None else f", block={qparams.block}"
    return f"{qparams.dtype}(scale={scale}, zero_point={zero_point}, axis={qparams.axis}{block})"


def print_attr(value: Attr) -> str:
    """An attribute as it stands in the text; floats in their shortest exact form."""
    if isinstance(value, tuple):
        return _items([print_attr(item) for item in value])
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        return float.__repr__(value)
    return repr(value)


def quoted(text: str) -> str:
    r"""A string literal on one line; what cannot be seen becomes ``\n``, ``\t`` or ``\u{hex}``."""
    return '"' + "".join(_ESCAPES.get(c) or (c if c.isprintable() else f"\\u{{{ord(c):x}}}") for c in text) + '"'


def _code(graph: Graph, node: Node, short: bool) -> str:
    operands = [_ref(graph, value, short) for value in node.inputs]
    attrs = [f"{key}={print_attr(value)}" for key, value in node.attrs.items()]
    results = [_ref(graph, value, short) for value in node.outputs]
    return f"{_one_or_tuple(results)} = {node.op}({', '.join(operands + attrs)});"


def _note(graph: Graph, node: Node, short: bool) -> str:
    parts = [_value(graph, value, short) for value in node.outputs]
    if node.outputs[:1] != (node.name,):
        parts.append(f"name={_string(node.name, short)}")
    if not short and node.sources != (node.name,):
        parts.append(f"sources={_items([quoted(source) for source in node.sources])}")
    if node.reason:
        parts.append(f"reason={_string(node.reason, short)}")
    return ", ".join(parts)


def _value(graph: Graph, name: str, short: bool) -> str:
    kind = str(graph.types.get(name, "?"))
    return f"{kind} {print_qparams(graph.qparams[name], short=short)}" if name in graph.qparams else kind


def _ref(graph: Graph, name: str, short: bool) -> str:
    return ("@" if name in graph.constants else "%") + _name(name, short)


def _name(name: str, short: bool) -> str:
    return name if _BARE.fullmatch(name) and not (short and len(name) > _LONGEST_NAME) else _string(name, short)


def _string(text: str, short: bool) -> str:
    if not short or len(text) <= _LONGEST_NAME:
        return quoted(text)
    return f"{quoted(text[:40])}...{quoted(text[-20:])}"


def _short_qparams(qparams: QParams) -> str:
    parts = [f"scale={_range(qparams.scales, '{:.4g}'.format)}"]
    if qparams.qmin == 0 or any(qparams.zero_points):
        parts.append(f"zero_point={_range(qparams.zero_points, str)}")
    if qparams.axis is not None:
        parts.append(f"axis={qparams.axis}")
    if qparams.block is not None:
        parts.append(f"block={qparams.block}")
    return f"{qparams.dtype}({', '.join(parts)})"


def _range(numbers: Sequence[Number], text: Callable[[Number], str]) -> str:
    low, high = text(min(numbers)), text(max(numbers))
    return low if low == high else f"{low}..{high}"


def _items(items: list[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _one_or_tuple(items: list[str]) -> str:
    return items[0] if len(items) == 1 else _items(items)
