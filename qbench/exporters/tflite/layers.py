"""Sums of products: convolutions, transposed and depthwise ones too, fully connected layers, matrix products."""

import dataclasses
from typing import Any

import numpy as np

from qbench.exporters.tflite.fused import Followers, followers
from qbench.exporters.tflite.windows import windowed
from qbench.exporters.tflite.writer import Inexpressible, Writer, exporter
from qbench.ir.graph import Node

_KEYS = ("stride_h", "stride_w")


@exporter("qnn.conv2d", "nn.conv2d")
def conv2d(writer: Writer, node: Node) -> None:
    """CONV_2D with filters (out, h, w, in / groups), or DEPTHWISE_CONV_2D with (1, h, w, out)."""
    op, (data, weight) = writer.op(node), node.inputs
    array = _weight(writer, node, weight)
    channels = writer.graph.types[data].shape[1]
    depthwise = array.shape[1] == 1 and op.groups == channels and op.groups > 1
    filters = array.transpose(1, 2, 3, 0) if depthwise else array.transpose(0, 2, 3, 1)
    image, padding = windowed(writer, node, data, array.shape[2:], op.strides, op.padding, op.dilation)
    after = followers(writer, node)
    inputs = [image, writer.stored(weight, filters, 3 if depthwise else 0), _bias(writer, node, after.bias)]
    if inputs[-1] < 0:  # LiteRT's integer kernels want one
        inputs[-1] = _no_bias(writer, node, array.shape[0])
    options = {
        **dict(zip(_KEYS, op.strides, strict=True)),
        **dict(zip(("dilation_h_factor", "dilation_w_factor"), op.dilation, strict=True)),
        "padding": padding,
        "fused_activation_function": after.activation,
    }
    if depthwise:
        options["depth_multiplier"] = array.shape[0] // op.groups
    code, table = ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions") if depthwise else ("CONV_2D", "Conv2DOptions")
    writer.emit(code, inputs, [writer.make(after.output, "image")], table, **options)


@exporter("qnn.conv2d_transpose", "nn.conv2d_transpose")
def conv2d_transpose(writer: Writer, node: Node) -> None:
    """TRANSPOSE_CONV with filters (out, h, w, in); the size of its output decides what is cut off."""
    op, (data, weight) = writer.op(node), node.inputs
    array = _weight(writer, node, weight)
    if op.groups != 1 or tuple(op.dilation) != (1, 1):
        raise Inexpressible("transposed convolutions in groups, or dilated")
    after = followers(writer, node)
    shape = writer.graph.types[after.output].shape
    if not all(isinstance(size, int) for size in shape[1:]):
        raise Inexpressible("a transposed convolution of open sizes")
    sizes = [1 if isinstance(shape[0], str) else shape[0], int(shape[2]), int(shape[3]), int(shape[1])]
    padding = _undone(writer, node, sizes, array.shape[2:])
    size, filters = writer.integers(sizes), writer.stored(weight, array.transpose(1, 2, 3, 0), 0)
    inputs = _without_absent([size, filters, writer.read(data, "image"), _bias(writer, node, after.bias)])
    options = {**dict(zip(_KEYS, op.strides, strict=True)), "padding": padding}
    _emit_apart(
        writer, after, "TRANSPOSE_CONV", inputs, writer.make(after.output, "image"), "TransposeConvOptions", options
    )


def _undone(writer: Writer, node: Node, sizes: list[int], window: tuple[int, ...]) -> str:
    """The padding of the convolution that would undo this one."""
    op, shape = writer.op(node), writer.graph.types[node.inputs[0]].shape
    if isinstance(writer.graph.types[node.output].shape[0], str):
        raise Inexpressible("a transposed convolution of an open batch: load the model with shapes=")
    for name in ("VALID", "SAME"):
        fits = True
        for axis in (0, 1):
            have, stride, size = int(shape[2 + axis]), op.strides[axis], sizes[1 + axis]
            total = max((have - 1) * stride + window[axis] - size, 0) if name == "SAME" else 0
            count = -(-size // stride) if name == "SAME" else (size - window[axis]) // stride + 1
            fits = fits and count == have and op.padding[axis] == total // 2
        if fits:
            return name
    raise Inexpressible(f"the padding {op.padding} of a transposed convolution")


@exporter("qnn.dense", "nn.dense")
def dense(writer: Writer, node: Node) -> None:
    """FULLY_CONNECTED with weights (units, in)."""
    data, weight = node.inputs
    after = followers(writer, node)
    constant = writer.graph.constants.get(weight)
    weights = writer.read(weight) if constant is None else writer.stored(weight, constant.array, 0)
    _check_weight(writer, node)
    writer.emit(
        "FULLY_CONNECTED",
        [writer.read(data), weights, _bias(writer, node, after.bias)],
        [writer.make(after.output)],
        "FullyConnectedOptions",
        fused_activation_function=after.activation,
        keep_num_dims=writer.rank(data) > 2,
    )


@exporter("qnn.batch_matmul", "nn.batch_matmul")
def batch_matmul(writer: Writer, node: Node) -> None:
    """BATCH_MATMUL over the last two axes."""
    op, after, q = writer.op(node), followers(writer, node), writer.q(node.inputs[0])
    if q is not None and q.dtype == "uint8":
        raise Inexpressible("matrix products of uint8")
    inputs = [writer.read(value) for value in node.inputs]
    options = {"adj_x": op.transpose_lhs, "adj_y": op.transpose_rhs}
    _emit_apart(writer, after, "BATCH_MATMUL", inputs, writer.make(after.output), "BatchMatMulOptions", options)


def _emit_apart(
    writer: Writer, after: Followers, code: str, inputs: list[int], result: int, table: str, options: dict[str, Any]
) -> None:
    """An operator that fuses no activation, and the activation as one of its own."""
    if after.activation == "NONE":
        writer.emit(code, inputs, [result], table, **options)
        return
    raw = writer.scratch(f"{after.output}.raw", result, writer.q(after.output))
    writer.emit(code, inputs, [raw], table, **options)
    writer.emit(after.activation, [raw], [result])


def _weight(writer: Writer, node: Node, weight: str) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    if weight not in writer.graph.constants:
        raise Inexpressible("filters that are not constant")
    _check_weight(writer, node)
    return writer.graph.constants[weight].array


def _check_weight(writer: Writer, node: Node) -> None:
    """Refuse integers that TFLite's kernels do not multiply."""
    data, weight = (writer.q(value) for value in node.inputs)
    if data is None or weight is None:
        return
    if data.dtype == "uint8" and (weight.dtype != "uint8" or weight.axis is not None):
        raise Inexpressible("uint8 data with weights of another kind than uint8 per tensor")
    computed = node.inputs[1] not in writer.graph.constants  # these may have a zero point, and 16 bits
    known = weight.dtype == "int8" and not any(weight.zero_points)
    if data.dtype != "uint8" and not known and not (computed and weight.dtype in ("int8", data.dtype)):
        raise Inexpressible(f"{data.dtype} data with weights that are not int8 with zero point 0")
    if data.dtype == "int16" and any(data.zero_points):
        raise Inexpressible("int16 data with a zero point")
    sums = writer.graph.qparams[node.output].dtype
    if sums != ("int64" if data.dtype == "int16" else "int32"):
        raise Inexpressible(f"sums of {sums}, which {data.dtype} data do not have in TFLite")


def _bias(writer: Writer, node: Node, bias: str | None) -> int:
    """The bias, which has the product of the scales; -1 for none."""
    if bias is None:
        return -1
    sums = writer.graph.qparams.get(node.output)
    q = sums if sums is None else dataclasses.replace(sums, axis=None if sums.axis is None else 0)
    return writer.constant(bias, writer.graph.constants[bias].array, q)


def _no_bias(writer: Writer, node: Node, channels: int) -> int:
    sums = writer.graph.qparams.get(node.output)
    q = sums if sums is None else dataclasses.replace(sums, axis=None if sums.axis is None else 0)
    return writer.constant(f"{node.name}.bias", np.zeros(channels, "float32" if q is None else q.dtype), q)


def _without_absent(inputs: list[int]) -> list[int]:
    return inputs if inputs[-1] >= 0 else inputs[:-1]
