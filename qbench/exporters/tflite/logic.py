"""Comparisons, truth values, and choices by them."""

from qbench.exporters.tflite.writer import Writer, exporter
from qbench.formats.tflite import COMPARISONS
from qbench.ir.graph import Node

_CODES = COMPARISONS | {
    "logical_and": ("LOGICAL_AND", "LogicalAndOptions"),
    "logical_not": ("LOGICAL_NOT", "LogicalNotOptions"),
    "logical_or": ("LOGICAL_OR", "LogicalOrOptions"),
    "where": ("SELECT_V2", "SelectV2Options"),
}


@exporter("is_nan")
def is_nan(writer: Writer, node: Node) -> None:
    """Whether it differs from itself."""
    layout = writer.layout(*node.inputs)
    data = writer.read(node.inputs[0], layout)
    writer.emit("NOT_EQUAL", [data, data], [writer.make(node.output, layout)], "NotEqualOptions")


@exporter("qnn.compare")
def compare(writer: Writer, node: Node) -> None:
    """The same operator compares integers."""
    code, table = _CODES[writer.op(node).function]
    writer.write(node, code, table)


@exporter(*_CODES)
def logic(writer: Writer, node: Node) -> None:
    """An operator of its own, with NumPy's broadcasting."""
    code, table = _CODES[node.op]
    writer.write(node, code, table)
