"""Ops that give the same elements another shape, order, number or dtype."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import helper

from qbench.errors import ExportError, shown
from qbench.exporters.onnx.table import exporter
from qbench.exporters.onnx.writer import Writer
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.graph import Node
from qbench.ir.types import Dim
from qbench.ops.float.reshape import BatchFlatten, ExpandDims, Reshape, Squeeze, Transpose
from qbench.ops.float.select import BroadcastLike, BroadcastTo, Cast, Tile


@exporter("reshape")
def reshape(writer: Writer, node: Node) -> None:
    """A size known only at run time is written 0 where it stays in its place, else -1."""
    op = writer.op(node, Reshape)
    before, after = writer.type(node.inputs[0]).shape, writer.type(node.output).shape
    sizes: list[int] = []
    for axis, (wanted, size) in enumerate(zip(op.newshape, after, strict=True)):
        stays = axis < len(before) and before[axis] == size
        sizes.append(wanted if isinstance(wanted, int) and wanted != -1 else _written(size, stays))
    if sizes.count(-1) > 1:
        raise ExportError(
            f"node {shown(node.name)}: ONNX cannot say the shape {after}, which has several open sizes; "
            "fix them when the model is loaded, with shapes="
        )
    inputs = [*writer.inputs(node), writer.integers(node, "shape", sizes)]
    writer.emit("Reshape", inputs, node.outputs, node.name, allowzero=1 if 0 in op.newshape else None)


def _written(size: Dim, stays: bool) -> int:
    if isinstance(size, int):
        return size
    return 0 if stays else -1


@exporter("nn.batch_flatten")
def batch_flatten(writer: Writer, node: Node) -> None:
    """A matrix."""
    writer.emit("Flatten", writer.inputs(node), node.outputs, node.name, axis=writer.op(node, BatchFlatten).axis)


@exporter("transpose")
def transpose(writer: Writer, node: Node) -> None:
    """Axes in another order."""
    writer.emit("Transpose", writer.inputs(node), node.outputs, node.name, perm=writer.op(node, Transpose).axes)


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
    """A 1 in Expand's shape keeps the axis as it is, so open sizes are written so."""
    shape = [size if isinstance(size, int) else 1 for size in writer.op(node, BroadcastTo).shape]
    _with_integers(writer, node, "Expand", "shape", shape)


@exporter("broadcast_like")
def broadcast_like(writer: Writer, node: Node) -> None:
    """Expand to a shape of ones, but for one size that is read from another tensor."""
    op, rank = writer.op(node, BroadcastLike), writer.type(node.inputs[0]).rank
    data, like = writer.inputs(node)
    axis, other = op.axis % rank, op.like_axis % writer.type(node.inputs[1]).rank
    parts = [writer.step(node, "Shape", [like], start=other, end=other + 1)]
    if axis:
        parts.insert(0, writer.integers(node, "before", [1] * axis))
    if axis < rank - 1:
        parts.append(writer.integers(node, "after", [1] * (rank - 1 - axis)))
    shape = writer.step(node, "Concat", parts, axis=0)
    writer.emit("Expand", [data, shape], node.outputs, node.name)


@exporter("cast")
def cast(writer: Writer, node: Node) -> None:
    """Another dtype."""
    dtype = writer.op(node, Cast).dtype
    to = int(helper.np_dtype_to_tensor_dtype(numpy_dtype(dtype)))
    writer.emit("Cast", writer.inputs(node), node.outputs, node.name, to=to)


def _with_integers(writer: Writer, node: Node, op: str, what: str, values: Sequence[int]) -> None:
    writer.emit(op, [*writer.inputs(node), writer.integers(node, what, values)], node.outputs, node.name)
