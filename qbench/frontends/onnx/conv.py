"""Convolutions, of one dimension to three."""

from qbench.frontends.onnx.builder import Builder, Value
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter
from qbench.frontends.onnx.volumes import conv3d
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
    y = builder.emit("nn.conv2d", x, w, groups=groups, **_attrs(where))
    if bias is not None:
        y = builder.emit("nn.bias_add", y, bias)
    return flat_again(builder, y, rank)


@converter("ConvTranspose", "X W B?", CONV_ATTRS + " output_padding output_shape")
def conv_transpose(builder: Builder, node: SourceNode, x: Value, w: Value, bias: Value | None) -> Value:
    """A transposed convolution; a wanted output size is turned into pads."""
    rank = spatial(node, w)
    x, w = flattened(builder, x), flattened(builder, w)
    kernel = tuple(w.size(axis) for axis in (2, 3))
    extra = [0] * (2 - rank) + list(node.integers("output_padding") or (0,) * rank)
    wanted = node.integers("output_shape")
    same = node.text("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER")
    where = window(node, x, kernel, rank, pads_given=not (wanted or same))
    if wanted or same:
        lows: list[int] = []
        highs: list[int] = []
        for i in range(2):
            size, stride = x.size(i + 2), where.strides[i]
            goal = size * stride if wanted is None else (1, *wanted)[-2:][i] if rank == 1 else wanted[-2:][i]
            total = stride * (size - 1) + extra[i] + (kernel[i] - 1) * where.dilation[i] + 1 - goal
            extra[i] -= min(total, 0)
            total = max(total, 0)
            less, more = total // 2, total - total // 2
            upper = node.text("auto_pad", "NOTSET") == "SAME_UPPER"
            lows.append(less if upper else more)
            highs.append(more if upper else less)
        where = Window(where.strides, where.dilation, (*lows, *highs))
    attrs = _attrs(where) | {"output_padding": tuple(extra), "groups": node.integer("group", 1)}
    y = builder.emit("nn.conv2d_transpose", x, w, **attrs)
    if bias is not None:
        y = builder.emit("nn.bias_add", y, bias)
    return flat_again(builder, y, rank)


def _attrs(where: Window) -> dict[str, tuple[int, ...]]:
    return {"strides": where.strides, "padding": where.padding, "dilation": where.dilation}
