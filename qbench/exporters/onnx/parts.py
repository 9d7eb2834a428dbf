"""Ops that cut, join, pad and pick, and those that move elements between channels and pixels."""

from itertools import pairwise

import numpy as np
from onnx import helper

from qbench.errors import GraphError
from qbench.exporters.onnx.sizes import sizes
from qbench.exporters.onnx.writer import Writer, exporter
from qbench.ir.dtypes import numpy_dtype
from qbench.ir.graph import Node
from qbench.ir.sizes import size_of
from qbench.ir.types import Dim
from qbench.ops.float.image import Resize2d
from qbench.ops.float.select import Pad, Split, StridedSlice
from qbench.ops.float.sizes import Arange, Sizes


@exporter("split")
def split(writer: Writer, node: Node) -> None:
    """Cut into parts of given sizes."""
    op = writer.op(node, Split)
    size = writer.type(node.inputs[0]).shape[op.axis]
    edges = pairwise(map(size_of, (0, *op.cuts, size)))
    parts = sizes(writer, node, "split", [(end - start).dim for start, end in edges])
    writer.emit("Split", [*writer.inputs(node), parts], node.outputs, node.name, axis=op.axis)


@exporter("strided_slice")
def strided_slice(writer: Writer, node: Node) -> None:
    """data[begin:end:stride] along some axes."""
    op = writer.op(node, StridedSlice)
    parts = {"starts": op.begin, "ends": op.end, "axes": op.axes, "steps": op.strides}
    positions = [sizes(writer, node, what, values) for what, values in parts.items()]
    writer.emit("Slice", [*writer.inputs(node), *positions], node.outputs, node.name)


@exporter("nn.pad")
def pad(writer: Writer, node: Node) -> None:
    """Elements before and after each axis."""
    op = writer.op(node, Pad)
    widths = [before for before, _ in op.pad_width] + [after for _, after in op.pad_width]
    inputs = [*writer.inputs(node), sizes(writer, node, "pads", widths)]
    if op.mode == "constant":
        inputs.append(writer.number(node, "value", op.pad_value))
    writer.emit("Pad", inputs, node.outputs, node.name, mode=op.mode)


@exporter("rsqrt")
def rsqrt(writer: Writer, node: Node) -> None:
    """1 divided by the square root."""
    writer.emit("Reciprocal", [writer.step(node, "Sqrt", writer.inputs(node))], node.outputs, node.name)


@exporter("squared_difference")
def squared_difference(writer: Writer, node: Node) -> None:
    """The difference, times itself."""
    difference = writer.step(node, "Sub", writer.inputs(node))
    writer.emit("Mul", [difference, difference], node.outputs, node.name)


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
        antialias=1 if op.antialias else None,
        exclude_outside=1 if op.exclude_outside else None,
    )


def _scales_or_sizes(writer: Writer, node: Node, op: Resize2d, data: str) -> list[str]:
    """Scales where they lead to the sizes exactly; else sizes, those of the other axes read from the data.

    The attribute `axes` would do away with the batch, but onnxruntime's optimizer fails on it.
    """
    shape = writer.type(node.inputs[0]).shape
    if op.scales is not None:
        return [writer.constant(node, "scales", [1, 1, *op.scales], "float32")]
    ratios = [_ratio(out, size) for out, size in zip(op.size, shape[2:], strict=True)]
    scales = [ratio for ratio in ratios if ratio is not None]
    if len(scales) == len(ratios):
        return [writer.constant(node, "scales", [1, 1, *scales], "float32")]
    if isinstance(shape[0], int) and isinstance(shape[1], int):
        return ["", sizes(writer, node, "sizes", [shape[0], shape[1], *op.size])]
    outer = writer.step(node, "Shape", [data], start=0, end=2)
    return ["", writer.step(node, "Concat", [outer, sizes(writer, node, "size", op.size)], axis=0)]


def _ratio(out: Dim, size: Dim) -> float | None:
    """The scale that leads from one size to the other, if float32 has it and nothing is rounded."""
    try:
        ratio = (size_of(out) / size_of(size)).number
    except GraphError:
        return None
    return None if ratio is None or float(np.float32(ratio)) != ratio else float(ratio)


@exporter("sizes")
def size_values(writer: Writer, node: Node) -> None:
    """Sizes as numbers."""
    op = writer.op(node, Sizes)
    vector = sizes(writer, node, "values", op.values)
    shaped = writer.step(node, "Reshape", [vector, writer.integers(node, "shape", op.shape)])
    to = int(helper.np_dtype_to_tensor_dtype(numpy_dtype(op.dtype)))
    writer.emit("Cast", [shaped], node.outputs, node.name, to=to)


@exporter("arange")
def arange(writer: Writer, node: Node) -> None:
    """Counted in int64."""
    op = writer.op(node, Arange)
    bounds = {"start": op.start, "limit": op.stop, "delta": op.step}
    lists = [sizes(writer, node, what, [value]) for what, value in bounds.items()]
    scalar = writer.integers(node, "scalar", [])
    counted = writer.step(node, "Range", [writer.step(node, "Reshape", [value, scalar]) for value in lists])
    writer.emit(
        "Cast", [counted], node.outputs, node.name, to=int(helper.np_dtype_to_tensor_dtype(numpy_dtype(op.dtype)))
    )
