"""Ops that ONNX has as well, with the same operands."""

from typing import Any

from qbench.formats.onnx import PLAIN, WITH_ATTRIBUTES, attribute_names
from qbench.frontends.onnx.builder import Builder, Value
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import Function, converter
from qbench.ir.graph import Attr
from qbench.ir.op import OPS

_OPERANDS = {1: "X", 2: "A B", 3: "condition X Y"}
"""What ONNX calls the operands of most ops that have so many."""


def same(op: str, listed: str = "") -> Function:
    """What makes an op of a node: of its operands, and of the attributes that are listed."""
    fields, names = OPS[op].attributes(), attribute_names(listed)

    def convert(builder: Builder, node: SourceNode, *values: Value) -> Value:
        attrs = {ours: _attribute(node, theirs, fields[ours].default) for theirs, ours in names}
        return builder.emit(op, *values, **attrs)

    return convert


def _attribute(node: SourceNode, name: str, default: Any) -> Attr:
    """A number or a text of the kind of its default; those without one are integers."""
    if isinstance(default, bool):
        return node.flag(name, default)
    if isinstance(default, float):
        return node.real(name, default)
    return node.text(name, default) if isinstance(default, str) else node.integer(name, 0)


for _op, _name in (*PLAIN.items(), ("nn.relu", "Relu")):
    converter(_name, _OPERANDS[len(OPS[_op].operands)])(same(_op))
for _op, (_name, _operands, _listed) in WITH_ATTRIBUTES.items():
    converter(_name, _operands, " ".join(theirs for theirs, _ in attribute_names(_listed)))(same(_op, _listed))
