"""Convolutions, of one dimension to three."""

import numpy as np

from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter
from qbench.frontends.onnx.volumes import conv3d, conv3d_transpose
from qbench.frontends.onnx.window import Window, flat_again, flattened, spatial, window

CONV_ATTRS = "auto_pad dilations group kernel_shape pads strides"


@converter("Conv", "X W B?", CONV_ATTRS)
def conv(builder: Builder, node: SourceNode, x: Value, w: Value, bias: Value | None) -> Value:
    """A convolution and its bias; one over lines is one over images of height 1."""
    rank, groups = spatial(node, w, most=3), node.integer("group", 1)
    if rank == 3:
        return conv3d(builder, x, w, bias, window(node, x, tuple(w.size(axis) for axis in (2, 3, 4)), rank), groups)
    x, w = flattened(builder, x), flattened(builder, w)
    where = window(node, x, tuple(w.size(axis) for axis in (2, 3)), rank)
    y = builder.emit("nn.conv2d", x, w, groups=groups, **where.attrs)
    if bias is not None:
        y = builder.emit("nn.bias_add", y, bias)
    return flat_again(builder, y, rank)


@converter("ConvTranspose", "X W B?", CONV_ATTRS + " output_padding output_shape")
def conv_transpose(builder: Builder, node: SourceNode, x: Value, w: Value, bias: Value | None) -> Value:
    """A transposed convolution; a wanted output size is turned into pads."""
    rank, groups = spatial(node, w, most=3), node.integer("group", 1)
    if rank < 3:
        x, w = flattened(builder, x), flattened(builder, w)
    kernel = tuple(w.size(axis) for axis in range(2, w.rank))
    where, extra = _grown(node, x, kernel, rank)
    if rank == 3:
        return conv3d_transpose(builder, x, w, bias, where, extra, groups)
    y = builder.emit("nn.conv2d_transpose", x, w, output_padding=extra, groups=groups, **where.attrs)
    if bias is not None:
        y = builder.emit("nn.bias_add", y, bias)
    return flat_again(builder, y, rank)


def _grown(node: SourceNode, x: Value, kernel: tuple[int, ...], rank: int) -> tuple[Window, tuple[int, ...]]:
    """The window of a transposed convolution, and how much larger its result is than the window says."""
    extra = [0] * (len(kernel) - rank) + list(node.integers("output_padding") or (0,) * rank)
    wanted = node.integers("output_shape")
    auto = node.text("auto_pad", "NOTSET")
    same = auto in ("SAME_UPPER", "SAME_LOWER")
    where = window(node, x, kernel, rank, pads_given=not (wanted or same))
    if not (wanted or same):
        return where, tuple(extra)
    lows: list[int] = []
    highs: list[int] = []
    for i, reach in enumerate(kernel):
        size, stride = x.size(i + 2), where.strides[i]
        goal = size * stride if wanted is None else (1, *wanted)[-len(kernel) :][i]
        total = stride * (size - 1) + extra[i] + (reach - 1) * where.dilation[i] + 1 - goal
        extra[i] -= min(total, 0)
        total = max(total, 0)
        less, more = total // 2, total - total // 2
        lows.append(less if auto == "SAME_UPPER" else more)
        highs.append(more if auto == "SAME_UPPER" else less)
    return Window(where.strides, where.dilation, (*lows, *highs)), tuple(extra)


@converter("Col2Im", "input image_shape block_shape", "dilations pads strides")
def col2im(builder: Builder, node: SourceNode, x: Value, image: Value, block: Value) -> Value:
    """Patches side by side, added up where they overlap: a transposed convolution by the taps of each channel."""
    size, kernel = image.integers(), block.integers()
    if len(size) != 2:
        raise Unsupported(f"patches of {len(size)} dimensions; only 2 are supported")
    strides, dilation = (node.integers(name) or (1, 1) for name in ("strides", "dilations"))
    pads, taps = node.integers("pads") or (0, 0, 0, 0), kernel[0] * kernel[1]
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    room = [size[i] + pads[i] + pads[i + 2] - reach[i] for i in range(2)]
    counts = [room[i] // strides[i] + 1 for i in range(2)]
    channels = x.size(1) // taps
    columns = builder.emit("reshape", x, newshape=(x.shape[0], channels * taps, *counts))
    rest = tuple(room[i] % strides[i] for i in range(2))
    if kernel == strides and kernel[0] == kernel[1] and dilation == (1, 1) and not any((*pads, *rest)):
        return builder.emit("nn.depth_to_space", columns, block_size=kernel[0], mode="CRD")
    one = np.tile(np.eye(taps, dtype=x.dtype), (channels, 1)).reshape(channels * taps, 1, *kernel)
    attrs = {"strides": strides, "dilation": dilation, "padding": pads, "output_padding": rest, "groups": channels}
    return builder.emit("nn.conv2d_transpose", columns, one, **attrs)
