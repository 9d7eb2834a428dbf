"""Ops that pick, sort, count and write elements by index."""

from qbench.exporters.onnx.writer import Writer, exporter
from qbench.ir.graph import Node
from qbench.ops.float.indexing import CumSum, OneHot


@exporter("cumsum")
def cumsum(writer: Writer, node: Node) -> None:
    """The axis is an input."""
    op = writer.op(node, CumSum)
    inputs = [*writer.inputs(node), writer.constant(node, "axis", op.axis, "int64")]
    writer.emit("CumSum", inputs, node.outputs, node.name, exclusive=int(op.exclusive), reverse=int(op.reverse))


@exporter("one_hot")
def one_hot(writer: Writer, node: Node) -> None:
    """The number of places is an input."""
    op = writer.op(node, OneHot)
    data, values = writer.inputs(node)
    count = writer.constant(node, "depth", op.places, "int64")
    writer.emit("OneHot", [data, count, values], node.outputs, node.name, axis=op.axis)
