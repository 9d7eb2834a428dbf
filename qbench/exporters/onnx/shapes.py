"""Ops that give the same elements another shape, order, number or dtype."""

from collections.abc import Sequence

from onnx import helper

from qbench.exporters.onnx.sizes import sizes
from qbench.exporters.onnx.writer import Writer, exporter
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.graph import Node
from qbench.ir.types import Dim
from qbench.ops.float.reshape import ExpandDims, Reshape, Squeeze
from qbench.ops.float.select import BroadcastTo, Cast, Tile


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


@exporter("squeeze")
def squeeze(writer: Writer, node: Node) -> None:
    """Without some axes of size 1."""
    _with_integers(writer, node, "Squeeze", "axes", writer.op(node, Squeeze).axes)


@exporter("expand_dims")
def expand_dims(writer: Writer, node: Node) -> None:
    """With new axes of size 1."""
    _with_integers(writer, node, "Unsqueeze", "axes", writer.op(node, ExpandDims).axes)


@exporter("tile")
def tile(writer: Writer, node: Node) -> None:
    """Several times over along each axis."""
    _with_integers(writer, node, "Tile", "repeats", writer.op(node, Tile).reps)


@exporter("broadcast_to")
def broadcast_to(writer: Writer, node: Node) -> None:
    """A 1 in Expand's shape keeps the axis as it is, so open sizes that stay are written so."""
    shape, data = writer.op(node, BroadcastTo).shape, writer.type(node.inputs[0]).shape
    have = (1,) * (len(shape) - len(data)) + data
    wanted = [1 if size == kept else size for size, kept in zip(shape, have, strict=True)]
    _with_integers(writer, node, "Expand", "shape", wanted)


@exporter("cast")
def cast(writer: Writer, node: Node) -> None:
    """Another dtype."""
    dtype = writer.op(node, Cast).dtype
    to = int(helper.np_dtype_to_tensor_dtype(numpy_dtype(dtype)))
    writer.emit("Cast", writer.inputs(node), node.outputs, node.name, to=to)


def _with_integers(writer: Writer, node: Node, op: str, what: str, values: Sequence[Dim]) -> None:
    writer.emit(op, [*writer.inputs(node), sizes(writer, node, what, values)], node.outputs, node.name)
