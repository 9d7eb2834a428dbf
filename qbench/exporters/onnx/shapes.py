"""Ops that give the same elements another shape, order, number or dtype."""

from onnx import helper

from qbench.exporters.onnx.sizes import sizes
from qbench.exporters.onnx.writer import Writer, exporter
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.graph import Node
from qbench.ops.float.reshape import Reshape
from qbench.ops.float.select import BroadcastTo, Cast


@exporter("reshape")
def reshape(writer: Writer, node: Node) -> None:
    """A size known only at run time is written 0 where it stays in its place; one may be -1, several are worked out."""
    op = writer.op(node, Reshape)
    before, after = writer.type(node.inputs[0]).shape, writer.type(node.output).shape
    wanted = [
        0 if isinstance(size, str) and before[axis : axis + 1] == (size,) else size for axis, size in enumerate(after)
    ]
    if sum(isinstance(size, str) for size in wanted) == 1:
        wanted = [-1 if isinstance(size, str) else size for size in wanted]
    empty = 0 in op.newshape
    inputs = [*writer.inputs(node), sizes(writer, node, "shape", after if empty else wanted)]
    writer.emit("Reshape", inputs, node.outputs, node.name, allowzero=1 if empty else None)


@exporter("broadcast_to")
def broadcast_to(writer: Writer, node: Node) -> None:
    """A 1 in Expand's shape keeps the axis as it is, so open sizes that stay are written so."""
    shape, data = writer.op(node, BroadcastTo).shape, writer.type(node.inputs[0]).shape
    have = (1,) * (len(shape) - len(data)) + data
    wanted = [1 if size == kept else size for size, kept in zip(shape, have, strict=True)]
    inputs = [*writer.inputs(node), sizes(writer, node, "shape", wanted)]
    writer.emit("Expand", inputs, node.outputs, node.name)


@exporter("cast")
def cast(writer: Writer, node: Node) -> None:
    """Another dtype."""
    dtype = writer.op(node, Cast).dtype
    to = int(helper.np_dtype_to_tensor_dtype(numpy_dtype(dtype)))
    writer.emit("Cast", writer.inputs(node), node.outputs, node.name, to=to)
