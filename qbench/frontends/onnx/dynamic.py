"""Integer ops without scales, and those whose scales are computed at run time."""

import numpy as np

from qbench.errors import ModelError, shown
from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.source import Array, SourceNode
from qbench.frontends.onnx.table import converter
from qbench.frontends.onnx.window import flat_again, flattened, spatial, window
from qbench.ir.graph import Attr

_MS = "com.microsoft"


@converter("DynamicQuantizeLinear", "x")
def dynamic_quantize_linear(builder: Builder, node: SourceNode, x: Value) -> tuple[Value, ...]:
    """uint8 integers at the scale of the data's range."""
    return builder.emit_many("qnn.dynamic_quantize", (x,), 3)


@converter("MatMulInteger", "A B a_zero_point? b_zero_point?")
def matmul_integer(builder: Builder, node: SourceNode, a: Value, b: Value, za: Value | None, zb: Value | None) -> Value:
    """A product of integer matrices; with constant zero points, an op that has them as attributes."""
    left, right = _zero_point(node, a, za), _zero_point(node, b, zb)
    if isinstance(left, Value) or isinstance(right, Value) or a.rank < 2 or b.rank < 2 or left.size > 1:
        return builder.emit("integer.matmul_dynamic", a, b, left, right)
    lhs, rhs = int(left.item()), tuple(map(int, right.ravel()))
    if b.constant is not None and b.rank == 2:
        zeros: Attr = rhs[0] if len(set(rhs)) == 1 else rhs
        weight = builder.known(b, b.constant.T)
        return builder.emit("integer.dense", a, weight, data_zero_point=lhs, weight_zero_point=zeros)
    if len(set(rhs)) > 1:
        return builder.emit("integer.matmul_dynamic", a, b, left, right)
    return builder.emit("integer.batch_matmul", a, b, lhs_zero_point=lhs, rhs_zero_point=rhs[0])


@converter("ConvInteger", "x w x_zero_point? w_zero_point?", "auto_pad dilations group kernel_shape pads strides")
def conv_integer(builder: Builder, node: SourceNode, x: Value, w: Value, zx: Value | None, zw: Value | None) -> Value:
    """A convolution of integers; padding stands for 0."""
    rank = spatial(node, w)
    data_zero, weight_zero = _zero_point(node, x, zx), _zero_point(node, w, zw)
    x, w = flattened(builder, x), flattened(builder, w)
    where = window(node, x, tuple(w.size(axis) for axis in (2, 3)), rank)
    attrs: dict[str, Attr] = {**where.attrs, "groups": node.integer("group", 1)}
    if isinstance(data_zero, Value) or isinstance(weight_zero, Value):
        y = builder.emit("integer.conv2d_dynamic", x, w, data_zero, weight_zero, **attrs)
    else:
        zeros = tuple(map(int, weight_zero.ravel()))
        attrs |= {"data_zero_point": int(data_zero.item())}
        attrs |= {"weight_zero_point": zeros[0] if len(set(zeros)) == 1 else zeros}
        y = builder.emit("integer.conv2d", x, w, **attrs)
    return flat_again(builder, y, rank)


def _zero_point(node: SourceNode, x: Value, zero_point: Value | None) -> Value | Array:
    """A zero point as an array where it is known."""
    if zero_point is None:
        return np.zeros((), x.dtype)
    if zero_point.dtype != x.dtype:
        raise ModelError(
            f"node {node}: the zero point {shown(zero_point.name)} of {shown(x.name)} is {zero_point.dtype}, "
            f"but the tensor is {x.dtype}"
        )
    return zero_point if zero_point.constant is None else zero_point.constant


@converter("MatMulIntegerToFloat", "A B a_scale b_scale a_zp? b_zp? bias?", domain=_MS)
def matmul_integer_to_float(
    builder: Builder, node: SourceNode, a: Value, b: Value, sa: Value, sb: Value, za: Value | None, zb: Value | None,
    bias: Value | None,
) -> Value:  # fmt: skip
    """A product of integer matrices, scaled to real numbers."""
    for scale, tensor in ((sa, a), (sb, b)):
        _check_scale(node, scale, tensor)
    sums = builder.emit("cast", matmul_integer(builder, node, a, b, za, zb), dtype="float32")
    y = builder.emit("multiply", sums, builder.emit("multiply", sa, sb))
    return y if bias is None else builder.emit("add", y, bias)


@converter("DynamicQuantizeMatMul", "A B b_scale b_zp? bias?", domain=_MS)
def dynamic_quantize_matmul(
    builder: Builder, node: SourceNode, a: Value, b: Value, sb: Value, zb: Value | None, bias: Value | None
) -> Value:
    """The left matrix quantized at the scale of its own range, multiplied by integers, scaled to real numbers."""
    integers, scale, zero_point = dynamic_quantize_linear(builder, node, a)
    return matmul_integer_to_float(builder, node, integers, b, scale, sb, zero_point, zb, bias)


def _check_scale(node: SourceNode, scale: Value, tensor: Value) -> None:
    if scale.dtype != "float32":
        raise Unsupported(f"the scale {shown(scale.name)} of {shown(tensor.name)} is {scale.dtype}")
    if scale.constant is not None and not (scale.constant > 0).all():
        raise ModelError(
            f"node {node}: {shown(tensor.name)}: scale {float(scale.constant.min())} must be positive and finite"
        )
