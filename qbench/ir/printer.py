"""Graphs as text, in Relay's look, complete enough that :func:`qbench.ir.parser.parse_graph` gives the same graph back.

    def @mnist(%x: Tensor[(N, 784), float32]) -> Tensor[(N, 512), uint8] uint8(scale=0.02, zero_point=3) {
      %fc1 = qnn.dense(%x, @fc1.weight);  // Tensor[(N, 512), uint8] uint8(scale=0.02, zero_point=3), sources=("a", "b")
      %fc1
    }
    @fc1.weight: Tensor[(512, 784), int8] int8(scale=(...), zero_point=0, axis=0);

``%`` marks what depends on the input, ``@`` constants. After ``//`` stands what the values are: type, qparams, then the
node's name where it is not the first value's, its sources where they are not just the name, and its reason.
"""

from __future__ import annotations

import re

import numpy as np

from qbench.ir.graph import Attr, Graph, Node
from qbench.ir.qparams import EXACT_SCALES, QParams

__all__ = ["print_attr", "print_graph", "print_node", "print_qparams", "quoted", "value_line"]

BARE = r"[A-Za-z0-9_./-]+(?::[A-Za-z0-9_./-]+)*"
"""Names that need no quotes."""
_BARE = re.compile(BARE)
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_WIDEST = 72
_LONGEST_NAME = 100
_MOST_ITEMS = 4


def print_graph(graph: Graph, *, short: bool = False) -> str:
    """The graph as text.

    Parameters
    ----------
    graph
        Any graph.
    short
        For reading: per-axis qparams of more than 4 entries and names of more than 100 characters are abbreviated, and
        the parser refuses them. Without it the text is exact.
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
    return "\n".join(lines) + "\n"


def print_node(graph: Graph, node: Node, *, short: bool = False) -> str:
    """The line of one node; types and qparams that the graph lacks are left out."""
    return f"{_code(graph, node, short)}  // {_note(graph, node, short)}"


def value_line(graph: Graph, name: str, *, short: bool = False) -> str:
    """The line that declares an input or a constant."""
    return f"{_ref(graph, name, short)}: {_value(graph, name, short)};"


def print_qparams(qparams: QParams, *, short: bool = False) -> str:
    """``int8(scale=0.5, zero_point=0)``; scales in their shortest exact form, equal zero points written once."""
    exact = qparams.dtype in EXACT_SCALES
    scales = [repr(scale) if exact else str(np.float32(scale)) for scale in qparams.scales]
    zero_points = [str(zero_point) for zero_point in qparams.zero_points]
    if qparams.axis is None:
        return f"{qparams.dtype}(scale={scales[0]}, zero_point={zero_points[0]})"
    scale = _items(scales, short)
    zero_point = zero_points[0] if len(set(zero_points)) == 1 else _items(zero_points, short)
    return f"{qparams.dtype}(scale={scale}, zero_point={zero_point}, axis={qparams.axis})"


def print_attr(value: Attr) -> str:
    """An attribute as it stands in the text; floats in their shortest exact form."""
    if isinstance(value, tuple):
        return _items([print_attr(item) for item in value], False)
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
    if node.sources != (node.name,):
        parts.append(f"sources={_items([_string(source, short) for source in node.sources], short)}")
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


def _items(items: list[str], short: bool) -> str:
    if short and len(items) > _MOST_ITEMS:
        return f"({', '.join(items[:_MOST_ITEMS])}, ... {len(items)} in all)"
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _one_or_tuple(items: list[str]) -> str:
    return items[0] if len(items) == 1 else _items(items, False)
