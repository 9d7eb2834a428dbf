"""Ops that give the same elements another shape, order or number."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from qbench.exporters.tflite.writer import Inexpressible, Layout, Writer, closed, exporter
from qbench.formats.tflite import TO_NCHW, TO_NHWC
from qbench.ir.graph import Node
from qbench.ir.types import Dim, dim_product


@exporter("reshape", "nn.batch_flatten", "squeeze", "expand_dims")
def reshape(writer: Writer, node: Node) -> None:
    """RESHAPE; images of one pixel or one channel lie alike in both layouts."""
    data, kind = node.inputs[0], writer.graph.types[node.output]
    shape = _one_open(kind.shape)
    given = writer.graph.types[data].shape
    alike = len(given) == 4 and (given[1] == 1 or given[2:] == (1, 1)) and "image" in writer.forms(data)
    source = writer.read(data, "image" if alike else "plain")
    layout: Layout = "image" if len(shape) == 4 and (shape[1] == 1 or shape[2:] == [1, 1]) else "plain"
    shape = [shape[axis] for axis in TO_NHWC] if layout == "image" else shape
    inputs = [source, writer.integers(shape)]
    writer.emit("RESHAPE", inputs, [writer.make(node.output, layout)], "ReshapeOptions", new_shape=shape)


def _one_open(sizes: Sequence[Dim]) -> list[int]:
    """A shape as RESHAPE takes it, with -1 for an open size; Inexpressible where there are several."""
    shape = [size if isinstance(size, int) else -1 for size in sizes]
    if shape.count(-1) > 1:
        raise Inexpressible("a shape with several open sizes: load the model with shapes=")
    return shape


@exporter("transpose")
def transpose(writer: Writer, node: Node) -> None:
    """TRANSPOSE; nothing at all where it only leads from one layout to the other."""
    data, axes = node.inputs[0], tuple(writer.op(node).axes)
    forms = writer.forms(data)
    if axes == TO_NCHW and "plain" in forms:
        writer.alias(node.output, "image", forms["plain"])
    elif axes == TO_NHWC and "image" in forms:
        writer.alias(node.output, "plain", forms["image"])
    else:
        inputs = [writer.read(data), writer.integers(axes)]
        writer.emit("TRANSPOSE", inputs, [writer.make(node.output)], "TransposeOptions")


@exporter("concatenate", "qnn.concatenate")
def concatenate(writer: Writer, node: Node) -> None:
    """CONCATENATION along one axis."""
    op, layout = writer.op(node), writer.layout(*node.inputs)
    rank = writer.rank(node.output)
    axis = op.axis % rank
    place = TO_NHWC.index(axis) if layout == "image" else axis
    writer.write(node, "CONCATENATION", "ConcatenationOptions", layout=layout, axis=place)


@exporter("split")
def split(writer: Writer, node: Node) -> None:
    """SPLIT_V into parts of given sizes."""
    op, data = writer.op(node), node.inputs[0]
    layout, axis = writer.layout(data), int(op.axis) % writer.rank(data)
    ends = closed(0, *op.cuts, writer.graph.types[data].shape[axis])
    sizes = [end - start for start, end in pairwise(ends)]
    place = TO_NHWC.index(axis) if layout == "image" else axis
    inputs = [writer.read(data, layout), writer.integers(sizes), writer.constant("axis", np.asarray(place, np.int32))]
    outputs = [writer.make(value, layout) for value in node.outputs]
    writer.emit("SPLIT_V", inputs, outputs, "SplitVOptions", num_splits=len(outputs))


@exporter("strided_slice")
def strided_slice(writer: Writer, node: Node) -> None:
    """STRIDED_SLICE: every axis that is taken whole is masked."""
    op, data = writer.op(node), node.inputs[0]
    layout, rank = writer.layout(data), writer.rank(data)
    begin, end, strides, mask = [0] * rank, [0] * rank, [1] * rank, (1 << rank) - 1
    ends = mask
    for start, stop, step, axis in zip(op.begin, op.end, op.strides, op.axes, strict=True):
        place = TO_NHWC.index(axis % rank) if layout == "image" else axis % rank
        size, start, stop = closed(writer.graph.types[data].shape[int(axis) % rank], start, stop)
        picked = range(size)[slice(start, stop, step)]
        begin[place], strides[place] = picked.start, picked.step
        end[place] = picked.stop
        mask &= ~(1 << place)
        ends &= ~(1 << place) if picked.stop >= 0 else -1
    inputs = [writer.read(data, layout), *(writer.integers(numbers) for numbers in (begin, end, strides))]
    result = writer.make(node.output, layout)
    writer.emit("STRIDED_SLICE", inputs, [result], "StridedSliceOptions", begin_mask=mask, end_mask=ends)


@exporter("nn.pad")
def pad(writer: Writer, node: Node) -> None:
    """PAD with what stands for 0.0, PADV2 with another number, MIRROR_PAD; GATHER for the edge several times."""
    op, data = writer.op(node), node.inputs[0]
    layout = writer.layout(data)
    pairs = [op.pad_width[axis] for axis in TO_NHWC] if layout == "image" else op.pad_width
    widths = closed(*(number for pair in pairs for number in pair))
    if min(widths, default=0) < 0:
        raise Inexpressible("a pad that cuts")
    if op.mode == "edge" and max(widths, default=0) > 1:
        _repeat_edges(writer, node, layout, pairs)
        return
    inputs = [writer.read(data, layout), writer.constant("pads", np.asarray(pairs, np.int32))]
    result, q = writer.make(node.output, layout), writer.q(data)
    if op.mode != "constant":
        mode = "REFLECT" if op.mode == "reflect" else "SYMMETRIC"
        writer.emit("MIRROR_PAD", inputs, [result], "MirrorPadOptions", mode=mode)
        return
    fill = op.pad_value - writer.offset(data)
    if fill == (0.0 if q is None else q.zero_points[0]):
        writer.emit("PAD", inputs, [result], "PadOptions")
        return
    value = np.asarray([fill], writer.tensors[inputs[0]].dtype)
    writer.emit("PADV2", [*inputs, writer.constant("fill", value, q)], [result], "PadV2Options")


def _repeat_edges(writer: Writer, node: Node, layout: Layout, pairs: Sequence[tuple[int, int]]) -> None:
    """Along each axis, elements picked by their places, those at the ends several times."""
    source, result = writer.read(node.inputs[0], layout), writer.make(node.output, layout)
    given = writer.graph.types[node.inputs[0]].shape
    wide = [axis for axis, pair in enumerate(pairs) if any(pair)]
    for axis in wide:
        shape = list(writer.tensors[source].shape)
        (size,) = closed(given[TO_NHWC[axis] if layout == "image" else axis])
        shape[axis] = size + sum(pairs[axis])
        made = result
        if axis != wide[-1]:
            made = writer.scratch(f"{node.name}.padded", source, writer.tensors[source].q, shape=shape)
        places = np.pad(np.arange(size, dtype=np.int32), pairs[axis], mode="edge")
        writer.emit("GATHER", [source, writer.constant("places", places)], [made], "GatherOptions", axis=axis)
        source = made


@exporter("take")
def take(writer: Writer, node: Node) -> None:
    """GATHER along one axis."""
    axis = writer.op(node).axis % writer.rank(node.inputs[0])
    writer.write(node, "GATHER", "GatherOptions", layout="plain", axis=axis)


@exporter("tile")
def tile(writer: Writer, node: Node) -> None:
    """TILE along each axis."""
    data, layout = node.inputs[0], writer.layout(node.inputs[0])
    counts = writer.op(node).reps
    counts = [counts[axis] for axis in TO_NHWC] if layout == "image" else counts
    writer.emit(
        "TILE", [writer.read(data, layout), writer.integers(counts)], [writer.make(node.output, layout)], "TileOptions"
    )


@exporter("nn.depth_to_space", "nn.space_to_depth")
def blocks(writer: Writer, node: Node) -> None:
    """DEPTH_TO_SPACE and SPACE_TO_DEPTH where these have the order of channels, and a kernel."""
    op, inward, shape = writer.op(node), node.op == "nn.depth_to_space", writer.graph.types[node.output].shape
    source = writer.read(node.inputs[0], "image")
    has_kernel = writer.tensors[source].dtype in _OF_BLOCKS
    ordered = not inward or op.mode == "DCR" or shape[1] == 1
    if has_kernel and not ordered and sum(isinstance(size, str) for size in shape) > 1:
        source, ordered = _reordered(writer, node, source), True
    if not has_kernel or not ordered:
        _in_parts(writer, node, source)
        return
    code, table = ("DEPTH_TO_SPACE", "DepthToSpaceOptions") if inward else ("SPACE_TO_DEPTH", "SpaceToDepthOptions")
    writer.emit(code, [source], [writer.make(node.output, "image")], table, block_size=op.block_size)


_OF_BLOCKS = ("float32", "int8", "uint8", "int32", "int64")
"""What LiteRT moves between channels and pixels."""


def _reordered(writer: Writer, node: Node, source: int) -> int:
    """Channels in the order of DEPTH_TO_SPACE: slower than in parts, but whatever the sizes are."""
    places = np.arange(writer.tensors[source].shape[-1], dtype=np.int32)
    places = places.reshape(-1, writer.op(node).block_size ** 2).T.reshape(-1)
    made = writer.scratch(f"{node.name}.turned", source, writer.tensors[source].q)
    writer.emit("GATHER", [source, writer.constant("places", places)], [made], "GatherOptions", axis=3)
    return made


def _in_parts(writer: Writer, node: Node, source: int) -> None:
    """The rows of all images together, their pixels and channels split, and the parts in another order."""
    op, inward = writer.op(node), node.op == "nn.depth_to_space"
    block = op.block_size
    few, many = (node.inputs[0], node.output) if inward else (node.output, node.inputs[0])
    batch, _, height, width = writer.graph.types[few].shape
    rows, depth = dim_product((batch, height)), writer.graph.types[many].shape[1]
    if not inward:
        given, order = (rows, block, width, block, depth), (0, 2, 1, 3, 4)
    elif op.mode == "DCR":
        given, order = (rows, width, block, block, depth), (0, 2, 1, 3, 4)
    else:
        given, order = (rows, width, depth, block, block), (0, 3, 1, 4, 2)
    split, q = _one_open(given), writer.q(node.output)
    parts = writer.scratch(f"{node.name}.parts", source, q, shape=split)
    writer.emit("RESHAPE", [source, writer.integers(split)], [parts], "ReshapeOptions", new_shape=split)
    turned = writer.scratch(f"{node.name}.turned", source, q, shape=[split[axis] for axis in order])
    writer.emit("TRANSPOSE", [parts, writer.integers(order)], [turned], "TransposeOptions")
    shape = _one_open([writer.graph.types[node.output].shape[axis] for axis in TO_NHWC])
    result = writer.make(node.output, "image")
    writer.emit("RESHAPE", [turned, writer.integers(shape)], [result], "ReshapeOptions", new_shape=shape)
