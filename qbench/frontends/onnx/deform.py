"""Deformable convolutions: an image is sampled where offsets say, then its taps are channels of a plain convolution."""

import numpy as np

from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.conv import CONV_ATTRS
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter
from qbench.frontends.onnx.window import window
from qbench.ir.types import dim_product


@converter("DeformConv", "X W offset B? mask?", CONV_ATTRS + " offset_group")
def deform_conv(
    builder: Builder, node: SourceNode, x: Value, w: Value, offset: Value, bias: Value | None, mask: Value | None
) -> Value:
    """Offsets are (n, groups * taps * 2, height, width), rows before columns; a mask weighs each tap."""
    if x.rank != 4 or not w.fixed:
        raise Unsupported("deformable convolutions of other than images, or with computed weights")
    kernel = w.size(2), w.size(3)
    parts, taps = node.integer("offset_group", 1), kernel[0] * kernel[1]
    batch, channels, out = x.shape[0], x.size(1), (offset.size(2), offset.size(3))
    rows = dim_product((batch, parts))
    moved = builder.emit("reshape", offset, newshape=(rows, taps, 2, *out))
    where = window(node, x, kernel, 2)
    ways = list[Value]()
    for axis in (1, 0):  # a grid has columns before rows
        at = np.arange(out[axis]) * where.strides[axis] - where.padding[axis]
        tap = np.indices(kernel)[axis].reshape(taps, 1, 1) * where.dilation[axis]
        place = tap + (at[:, None] if axis == 0 else at)
        steps = 2 / max(x.size(axis + 2) - 1, 1)
        own = builder.emit("take", moved, np.asarray(axis), axis=2)
        scaled = builder.emit("multiply", own, np.asarray(steps, x.dtype))
        spot = builder.emit("add", scaled, (place * steps - 1).astype(x.dtype))
        ways.append(builder.emit("expand_dims", spot, axes=(4,)))
    grid = builder.emit("concatenate", *ways, axis=4)
    grid = builder.emit("reshape", grid, newshape=(rows, taps * out[0], out[1], 2))
    image = builder.emit("reshape", x, newshape=(rows, channels // parts, *x.shape[2:]))
    y = builder.emit("image.grid_sample", image, grid, method="linear", padding="zeros", align_corners=True)
    if mask is not None:
        y = builder.emit("multiply", y, builder.emit("reshape", mask, newshape=(rows, 1, taps * out[0], out[1])))
    y = builder.emit("reshape", y, newshape=(batch, channels * taps, *out))
    flat = builder.moved(w, lambda array: array.reshape(len(array), -1, 1, 1))
    y = builder.emit("nn.conv2d", y, flat, groups=node.integer("group", 1))
    return y if bias is None else builder.emit("nn.bias_add", y, bias)
