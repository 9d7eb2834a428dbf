"""Ops that cut, join, pad and pick, and those that move elements between channels and pixels."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from qbench.exporters.onnx.table import exporter
from qbench.exporters.onnx.writer import Writer
from qbench.ir.graph import Node
from qbench.ops.float.image import DepthToSpace, Resize2d, SpaceToDepth
from qbench.ops.float.select import Concatenate, GatherNd, Pad, Split, StridedSlice, Take


@exporter("concatenate")
def concatenate(writer: Writer, node: Node) -> None:
    """Joined along one axis."""
    writer.emit("Concat", writer.inputs(node), node.outputs, node.name, axis=writer.op(node, Concatenate).axis)


@exporter("split")
def split(writer: Writer, node: Node) -> None:
    """Cut into parts of given sizes."""
    op = writer.op(node, Split)
    size = writer.type(node.inputs[0]).shape[op.axis]
    edges = (0, *op.cuts, size if isinstance(size, int) else 0)
    sizes = writer.integers(node, "split", [end - start for start, end in pairwise(edges)])
    writer.emit("Split", [*writer.inputs(node), sizes], node.outputs, node.name, axis=op.axis)


@exporter("strided_slice")
def strided_slice(writer: Writer, node: Node) -> None:
    """data[begin:end:stride] along some axes."""
    op = writer.op(node, StridedSlice)
    parts = {"starts": op.begin, "ends": op.end, "axes": op.axes, "steps": op.strides}
    positions = [writer.integers(node, what, values) for what, values in parts.items()]
    writer.emit("Slice", [*writer.inputs(node), *positions], node.outputs, node.name)


@exporter("nn.pad")
def pad(writer: Writer, node: Node) -> None:
    """Elements before and after each axis."""
    op = writer.op(node, Pad)
    widths = [before for before, _ in op.pad_width] + [after for _, after in op.pad_width]
    inputs = [*writer.inputs(node), writer.integers(node, "pads", widths)]
    if op.mode == "constant":
        inputs.append(writer.number(node, "value", op.pad_value))
    writer.emit("Pad", inputs, node.outputs, node.name, mode=op.mode)


@exporter("take")
def take(writer: Writer, node: Node) -> None:
    """Elements at indices."""
    writer.emit("Gather", writer.inputs(node), node.outputs, node.name, axis=writer.op(node, Take).axis)


@exporter("gather_nd")
def gather_nd(writer: Writer, node: Node) -> None:
    """Parts at positions."""
    batch_dims = writer.op(node, GatherNd).batch_dims
    writer.emit("GatherND", writer.inputs(node), node.outputs, node.name, batch_dims=batch_dims)


@exporter("image.resize2d")
def resize2d(writer: Writer, node: Node) -> None:
    """Sizes, or the scales where the coordinates follow those."""
    op = writer.op(node, Resize2d)
    data = writer.inputs(node)[0]
    inputs = [data, "", *_scales_or_sizes(writer, node, op, data)]
    writer.emit(
        "Resize",
        inputs,
        node.outputs,
        node.name,
        mode=op.method,
        coordinate_transformation_mode=op.coordinate_transformation_mode,
        nearest_mode=op.nearest_mode if op.method == "nearest" else None,
        cubic_coeff_a=op.cubic_coeff_a if op.method == "cubic" else None,
    )


def _scales_or_sizes(writer: Writer, node: Node, op: Resize2d, data: str) -> list[str]:
    """Scales where they lead to the sizes exactly; else sizes, the batch read from the data.

    The attribute `axes` would do away with the batch, but onnxruntime's optimizer fails on it.
    """
    shape = writer.type(node.inputs[0]).shape
    scales = op.scales or tuple(
        out / size for out, size in zip(op.size, shape[2:], strict=True) if isinstance(size, int)
    )
    exact = all(
        float(np.float32(scale)) == scale and isinstance(size, int) and int(size * scale) == out
        for scale, size, out in zip(scales, shape[2:], op.size, strict=True)
    )
    if exact or op.scales is not None:
        return [writer.constant(node, "scales", [1, 1, *scales], "float32")]
    if isinstance(shape[0], int) and isinstance(shape[1], int):
        return ["", writer.integers(node, "sizes", [shape[0], shape[1], *op.size])]
    outer = writer.step(node, "Shape", [data], start=0, end=2)
    return ["", writer.step(node, "Concat", [outer, writer.integers(node, "size", op.size)], axis=0)]


@exporter("nn.depth_to_space")
def depth_to_space(writer: Writer, node: Node) -> None:
    """Channels as blocks of pixels."""
    op = writer.op(node, DepthToSpace)
    writer.emit("DepthToSpace", writer.inputs(node), node.outputs, node.name, blocksize=op.block_size, mode=op.mode)


@exporter("nn.space_to_depth")
def space_to_depth(writer: Writer, node: Node) -> None:
    """Blocks of pixels as channels."""
    block = writer.op(node, SpaceToDepth).block_size
    writer.emit("SpaceToDepth", writer.inputs(node), node.outputs, node.name, blocksize=block)
