"""Sums of products: convolutions, fully connected layers, matrix products, and what follows them."""

import dataclasses

import numpy as np

from qbench.errors import ModelError, shown
from qbench.frontends.tflite.builder import Builder, Unsupported, Value
from qbench.frontends.tflite.kinds import activated, is_quantized, padding, pair
from qbench.frontends.tflite.quantized import quantized
from qbench.frontends.tflite.source import Array, SourceOperator
from qbench.frontends.tflite.table import converter
from qbench.ir.graph import Attr
from qbench.ir.types import dim_factors, dim_product
from qbench.ops.numeric.windows import Pair

_WINDOW = "padding stride_w stride_h fused_activation_function quantized_bias_type"


@converter("CONV_2D", "input filter bias?", f"Conv2DOptions {_WINDOW} dilation_w_factor dilation_h_factor")
def conv2d(builder: Builder, op: SourceOperator, x: Value, w: Value, bias: Value | None) -> Value:
    """Filters are (out, h, w, in / groups); how many groups there are follows from the input's channels."""
    array = _filter(w)
    channels, inner = x.file_shape[-1], array.shape[3]
    if not isinstance(channels, int) or not inner or channels % inner:
        raise ModelError(f"{channels} channels of {shown(x.name)} do not fit filters of {inner} ({shown(w.name)})")
    weight = _weight(w, array.transpose(0, 3, 1, 2), 0, 0)
    return _convolved(builder, op, x, weight, bias, channels // inner)


@converter(
    "DEPTHWISE_CONV_2D",
    "input filter bias?",
    f"DepthwiseConv2DOptions {_WINDOW} depth_multiplier dilation_w_factor dilation_h_factor",
)
def depthwise_conv2d(builder: Builder, op: SourceOperator, x: Value, w: Value, bias: Value | None) -> Value:
    """Filters are (1, h, w, in * multiplier); the option depth_multiplier only repeats what shapes say."""
    array = _filter(w)
    channels = x.file_shape[-1]
    if array.shape[0] != 1 or not isinstance(channels, int) or not channels or array.shape[3] % channels:
        raise ModelError(f"filters {array.shape} ({shown(w.name)}) do not fit {channels} channels of {shown(x.name)}")
    weight = _weight(w, array.transpose(3, 0, 1, 2), 3, 0)
    return _convolved(builder, op, x, weight, bias, channels)


def _convolved(builder: Builder, op: SourceOperator, x: Value, weight: Value, bias: Value | None, groups: int) -> Value:
    data = builder.nchw(x)
    window = (int(weight.shape[2]), int(weight.shape[3]))
    strides, dilation = pair(op, "stride"), pair(op, "dilation", 1)
    pads = padding(op, data.shape[2:], window, strides, dilation)
    attrs: dict[str, Attr] = {"strides": strides, "padding": pads, "dilation": dilation, "groups": groups}
    return activated(builder, op, _summed(builder, "nn.conv2d", data, weight, bias, 1, attrs))


@converter("TRANSPOSE_CONV", "output_shape weights input bias?", f"TransposeConvOptions {_WINDOW}")
def transpose_conv(builder: Builder, op: SourceOperator, size: Value, w: Value, x: Value, bias: Value | None) -> Value:
    """To the size that is given."""
    dims = size.dims()
    if len(dims) != 4 or not isinstance(dims[1], int) or not isinstance(dims[2], int):
        raise Unsupported(f"the sizes in {shown(size.name)} must be four numbers")
    return _transposed(builder, op, x, w, bias, (dims[1], dims[2]))


@converter("custom.Convolution2DTransposeBias", "input weights bias", f"custom {_WINDOW}")
def media_pipe_transpose_conv(builder: Builder, op: SourceOperator, x: Value, w: Value, bias: Value) -> Value:
    """To the size that the file declares for the result; MediaPipe's."""
    _, height, width, _ = builder.result.shape
    if height is None or width is None:
        raise Unsupported(f"the size of {shown(builder.result.name)} must be known")
    return _transposed(builder, op, x, w, bias, (height, width))


def _transposed(builder: Builder, op: SourceOperator, x: Value, w: Value, bias: Value | None, out: Pair) -> Value:
    """Filters are (out, h, w, in); padding is that of the convolution which would undo this one."""
    array, data, strides = _filter(w), builder.nchw(x), pair(op, "stride")
    window = (array.shape[1], array.shape[2])
    top, left, _, _ = padding(op, out, window, strides)
    ends: list[int] = []
    for axis, before in enumerate((top, left)):
        have = data.shape[2 + axis]
        if not isinstance(have, int):
            raise Unsupported(f"the size {have} of {shown(x.name)} must be known: fix it with shapes=")
        ends.append((have - 1) * strides[axis] + window[axis] - before - out[axis])
    attrs: dict[str, Attr] = {
        "strides": strides,
        "padding": (top, left, max(ends[0], 0), max(ends[1], 0)),
        "output_padding": (max(-ends[0], 0), max(-ends[1], 0)),
    }
    weight = _weight(w, array.transpose(3, 0, 1, 2), 0, 1)
    return activated(builder, op, _summed(builder, "nn.conv2d_transpose", data, weight, bias, 1, attrs))


@converter(
    "FULLY_CONNECTED",
    "input weights bias?",
    "FullyConnectedOptions fused_activation_function keep_num_dims quantized_bias_type weights_format "
    "asymmetric_quantize_inputs",
)
def fully_connected(builder: Builder, op: SourceOperator, x: Value, w: Value, bias: Value | None) -> Value:
    """Weights are (units, in); all axes but the last become rows unless keep_num_dims says otherwise."""
    if op.integer("weights_format"):
        raise Unsupported("shuffled weights")
    if w.rank != 2 or not all(isinstance(size, int) for size in w.shape):
        raise ModelError(f"weights {shown(w.name)} should have 2 dimensions, but have {w.rank}")
    inner = w.shape[1]
    data = builder.filed(x)
    number, symbol = dim_factors(dim_product(data.shape))
    if not isinstance(inner, int) or not inner or number % inner:
        raise ModelError(
            f"{shown(x.name)} of shape {x.file_shape} does not fill rows of {inner}, as {shown(w.name)} has"
        )
    keep = op.flag("keep_num_dims") and data.shape[-1:] == (inner,)
    if not keep and (data.rank != 2 or data.shape[1] != inner):
        flat = _flattened(builder, x)
        rows = dim_product((number // inner, symbol)) if symbol else number // inner
        data = builder.emit("reshape", flat, q=x.q, nchw=False, newshape=(rows, inner))
    axis = data.rank - 1
    if w.constant is None and not is_quantized(builder, data, w):
        product = _summed(builder, "nn.batch_matmul", data, builder.filed(w), bias, axis, {"transpose_rhs": True})
        return activated(builder, op, product)
    weight = _weight(w, w.constant, 0, 0) if w.constant is not None else builder.filed(w)
    return activated(builder, op, _summed(builder, "nn.dense", data, weight, bias, axis, {}))


def _flattened(builder: Builder, x: Value) -> Value:
    """The input in whichever layout has its elements in the file's order without being moved."""
    if x.nchw and (x.shape[1] == 1 or x.shape[2:] == (1, 1)):
        return x
    return builder.filed(x)


@converter("BATCH_MATMUL", "x y", "BatchMatMulOptions adj_x adj_y asymmetric_quantize_inputs")
def batch_matmul(builder: Builder, op: SourceOperator, x: Value, y: Value) -> Value:
    """Matrix products over the last two axes of the file's layout."""
    attrs: dict[str, Attr] = {"transpose_lhs": op.flag("adj_x"), "transpose_rhs": op.flag("adj_y")}
    return _summed(builder, "nn.batch_matmul", builder.filed(x), builder.filed(y), None, None, attrs)


def _filter(w: Value) -> Array:
    if w.constant is None:
        raise Unsupported(f"the filters {shown(w.name)} must be constant")
    if w.rank != 4:
        raise ModelError(f"filters {shown(w.name)} should have 4 dimensions, but have {w.rank}")
    return w.constant


def _weight(w: Value, array: Array | None, axis: int, to: int) -> Value:
    """Weights in the graph's layout; their scales may run along one axis of the file's."""
    assert array is not None
    q = w.q
    if q is not None and q.axis is not None:
        if q.axis != axis:
            raise ModelError(
                f"weights {shown(w.name)} have scales along axis {q.axis}; the operator's are along {axis}"
            )
        q = dataclasses.replace(q, axis=to)
    return Value(w.name, tuple(array.shape), w.dtype, np.ascontiguousarray(array), q)


def _summed(
    builder: Builder, op: str, data: Value, weight: Value, bias: Value | None, axis: int | None, attrs: dict[str, Attr]
) -> Value:
    """Products, their bias along `axis`, and the rounding of a quantized operator."""
    added = None if bias is None else _vector(bias, axis)
    if is_quantized(builder, data, weight):
        if builder.q is None or builder.q.axis is not None:
            raise Unsupported("activations with scales per axis")
        if added is not None and added.dtype != "int32" and (added.dtype, data.dtype) != ("int64", "int16"):
            sums = "int64" if data.dtype == "int16" else "int32"
            raise Unsupported(f"the bias {shown(added.name)} is {added.dtype}, but what it is added to {sums}")
        return quantized(builder, op, (data, weight), attrs, bias=added, axis=axis)
    value = builder.emit(op, data, weight, attrs=attrs)
    return value if added is None else builder.emit("nn.bias_add", value, added, axis=axis)


def _vector(bias: Value, axis: int | None) -> Value:
    """A bias as a vector."""
    if bias.constant is None or axis is None:
        raise Unsupported(f"the bias {shown(bias.name)} must be constant")
    array = bias.constant.ravel()
    return Value(bias.name, (array.size,), bias.dtype, array, bias.q)
