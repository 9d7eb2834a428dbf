"""The QOperator form: ops on integers with their scales, read as dequantize, the float op, quantize."""

import dataclasses
from collections.abc import Callable
from typing import Any

from qbench.errors import ModelError, shown
from qbench.frontends.onnx.activation import softmax
from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.conv import conv
from qbench.frontends.onnx.linear import gemm, matmul
from qbench.frontends.onnx.pool import average_pool, global_average_pool
from qbench.frontends.onnx.quantized import dequantized, quantized
from qbench.frontends.onnx.same import same
from qbench.frontends.onnx.scales import integer_type, qparams
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter
from qbench.ir.qparams import QParams

_MS = "com.microsoft"
_CONV = "auto_pad dilations group kernel_shape pads strides"
_POOL = "auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides"


def _named(x: Value, node: SourceNode) -> Value:
    """A constant needs a name for its real numbers: the file has none."""
    return dataclasses.replace(x, name=f"{x.name}.dequantized") if x.stored is not None else x


def real_operand(
    builder: Builder, node: SourceNode, x: Value, scale: Value | None, zero_point: Value | None, axis: int | None = None
) -> tuple[Value, QParams]:
    """The real numbers of an operand."""
    q = qparams(node, x.name, x, integer_type(node, x.name, x.dtype), scale, zero_point, axis)
    return _named(dequantized(builder, dataclasses.replace(node, outputs=(x.name,)), x, q), node), q


def _result(builder: Builder, node: SourceNode, y: Value, scale: Value, zero_point: Value | None) -> Value:
    """The integers of a result."""
    dtype = "uint8" if zero_point is None else zero_point.dtype
    tensor = node.outputs[0]
    return quantized(builder, node, y, qparams(node, tensor, y, integer_type(node, tensor, dtype), scale, zero_point))


def _bias(builder: Builder, node: SourceNode, bias: Value | None, x: QParams, w: QParams) -> Value | None:
    """An int32 bias, in units of the product of the scales of data and weight."""
    if bias is None:
        return None
    if bias.dtype != "int32":
        raise ModelError(f"node {node}: the bias {shown(bias.name)} is {bias.dtype}, not int32")
    scales = tuple(x.scales[0] * scale for scale in w.scales)
    if w.axis is None or bias.shape != (len(scales),):
        q = QParams(scales[0], 0, "int32")
    else:
        q = QParams(scales, (0,) * len(scales), "int32", 0)
    return _named(dequantized(builder, dataclasses.replace(node, outputs=(bias.name,)), bias, q), node)


def _refuse_channels_last(node: SourceNode) -> None:
    if node.flag("channels_last"):
        raise Unsupported("channels_last, as onnxruntime's optimizer writes it: start from the model before it")


@converter("QLinearConv", "x x_scale x_zp w w_scale w_zp y_scale y_zp B?", _CONV)
@converter("QLinearConv", "x x_scale x_zp w w_scale w_zp y_scale y_zp B?", _CONV + " channels_last", domain=_MS)
def qlinear_conv(
    builder: Builder, node: SourceNode, x: Value, xs: Value, xz: Value, w: Value, ws: Value, wz: Value, ys: Value,
    yz: Value, bias: Value | None,
) -> Value:  # fmt: skip
    """A convolution; weights may have a scale per output channel."""
    _refuse_channels_last(node)
    (data, xq), (weight, wq) = real_operand(builder, node, x, xs, xz), real_operand(builder, node, w, ws, wz, 0)
    y = conv(builder, node, data, weight, _bias(builder, node, bias, xq, wq))
    return _result(builder, node, y, ys, yz)


@converter("QLinearMatMul", "a a_scale a_zp b b_scale b_zp y_scale y_zp")
@converter("QLinearMatMul", "a a_scale a_zp b b_scale b_zp y_scale y_zp", domain=_MS)
def qlinear_matmul(
    builder: Builder, node: SourceNode, a: Value, sa: Value, za: Value, b: Value, sb: Value, zb: Value, ys: Value,
    yz: Value,
) -> Value:  # fmt: skip
    """A product of matrices; the right one may have a scale per column."""
    lhs, _ = real_operand(builder, node, a, sa, za)
    rhs, _ = real_operand(builder, node, b, sb, zb, -1)
    return _result(builder, node, matmul(builder, node, lhs, rhs), ys, yz)


@converter("QGemm", "A a_scale a_zp B b_scale b_zp C? y_scale? y_zp?", "alpha transA transB", domain=_MS)
def qgemm(
    builder: Builder, node: SourceNode, a: Value, sa: Value, za: Value, b: Value, sb: Value, zb: Value,
    c: Value | None, ys: Value | None, yz: Value | None,
) -> Value:  # fmt: skip
    """alpha * A @ B + C, to integers, or without a scale of the result to real numbers."""
    (lhs, aq), (rhs, bq) = (
        real_operand(builder, node, a, sa, za),
        real_operand(builder, node, b, sb, zb, int(not node.flag("transB"))),
    )
    if c is not None and node.real("alpha", 1.0) != 1:
        raise Unsupported("alpha other than 1 beside a bias")
    y = gemm(builder, node, lhs, rhs, _bias(builder, node, c, aq, bq))
    return y if ys is None else _result(builder, node, y, ys, yz)


def _binary(onnx_op: str, op: str) -> None:
    @converter(onnx_op, "A a_scale a_zp? B b_scale b_zp? C_scale C_zp?", domain=_MS)
    def convert(  # pyright: ignore[reportUnusedFunction] registered
        builder: Builder, node: SourceNode, a: Value, sa: Value, za: Value | None, b: Value, sb: Value,
        zb: Value | None, ys: Value, yz: Value | None,
    ) -> Value:  # fmt: skip
        (lhs, _), (rhs, _) = real_operand(builder, node, a, sa, za), real_operand(builder, node, b, sb, zb)
        return _result(builder, node, builder.emit(op, lhs, rhs), ys, yz)


_binary("QLinearAdd", "add")
_binary("QLinearMul", "multiply")


def _unary(onnx_op: str, attributes: str, function: Callable[..., Any]) -> None:
    @converter(onnx_op, "X X_scale X_zp? Y_scale Y_zp?", attributes, domain=_MS)
    def convert(  # pyright: ignore[reportUnusedFunction] registered
        builder: Builder, node: SourceNode, x: Value, xs: Value, xz: Value | None, ys: Value, yz: Value | None
    ) -> Value:
        _refuse_channels_last(node)
        data, _ = real_operand(builder, node, x, xs, xz)
        return _result(builder, node, function(builder, node, data), ys, yz)


def _softmax(builder: Builder, node: SourceNode, x: Value) -> Value:
    return softmax(builder, dataclasses.replace(node, opset=node.integer("opset", 13)), x)


def _reduce_mean(builder: Builder, node: SourceNode, x: Value) -> Value:
    axes = tuple(sorted(map(x.axis, node.integers("axes") or range(x.rank))))
    return builder.emit("mean", x, axes=axes, keepdims=node.flag("keepdims", True))


_unary("QLinearSigmoid", "", same("sigmoid"))
_unary("QLinearLeakyRelu", "alpha", same("nn.leaky_relu", "alpha"))
_unary("QLinearSoftmax", "axis opset", _softmax)
_unary("QLinearAveragePool", _POOL, average_pool)
_unary("QLinearGlobalAveragePool", "channels_last", global_average_pool)
_unary("QLinearReduceMean", "axes keepdims", _reduce_mean)


@converter("QLinearConcat", "Y_scale Y_zp *", "axis", domain=_MS)
def qlinear_concat(builder: Builder, node: SourceNode, ys: Value, yz: Value, *inputs: Value) -> Value:
    """Tensors of different scales, joined."""
    if len(inputs) % 3:
        raise ModelError(f"node {node} takes a scale and a zero point with each input, not {len(inputs)} operands")
    triples = zip(inputs[::3], inputs[1::3], inputs[2::3], strict=True)
    reals = [real_operand(builder, node, x, scale, zero_point)[0] for x, scale, zero_point in triples]
    y = builder.emit("concatenate", *reals, axis=reals[0].axis(node.integer("axis", 0)))
    return _result(builder, node, y, ys, yz)


@converter("QLinearWhere", "condition X x_scale x_zp Y y_scale y_zp z_scale z_zp", domain=_MS)
def qlinear_where(
    builder: Builder, node: SourceNode, condition: Value, x: Value, xs: Value, xz: Value, y: Value, ys: Value,
    yz: Value, zs: Value, zz: Value,
) -> Value:  # fmt: skip
    """X where the condition holds, else Y."""
    (one, _), (other, _) = real_operand(builder, node, x, xs, xz), real_operand(builder, node, y, ys, yz)
    return _result(builder, node, builder.emit("where", condition, one, other), zs, zz)
