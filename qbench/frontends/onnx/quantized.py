"""QuantizeLinear and DequantizeLinear, of the standard and as onnxruntime had them before."""

import dataclasses

import numpy as np

from qbench.errors import DataError, ModelError, QParamsError, shown
from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.scales import integer_type, qparams
from qbench.frontends.onnx.source import Array, SourceNode
from qbench.frontends.onnx.stored import Stored
from qbench.frontends.onnx.table import converter
from qbench.ir.dtypes import DType
from qbench.ir.qparams import QParams
from qbench.quant.arithmetic import quantize

_TYPES = {2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 21: "uint4", 22: "int4"}
"""Element types by their numbers in ONNX."""

_ATTRS = "axis block_size output_dtype saturate precision"


@converter("QuantizeLinear", "x y_scale y_zero_point?", _ATTRS)
@converter("QuantizeLinear", "x y_scale y_zero_point?", _ATTRS, domain="com.microsoft")
def quantize_linear(builder: Builder, node: SourceNode, x: Value, scale: Value, zero_point: Value | None) -> Value:
    """Integers; of constants they are computed here."""
    wanted = node.integer("output_dtype", 0)
    if wanted and wanted not in _TYPES:
        raise Unsupported(f"{shown(node.outputs[0])} is quantized to the element type {wanted}")
    dtype = zero_point.dtype if zero_point is not None else _TYPES.get(wanted, "uint8")
    tensor = node.outputs[0]
    q = qparams(node, tensor, x, integer_type(node, tensor, dtype), scale, zero_point, node.integer("axis", 1))
    return quantized(builder, node, x, q)


def quantized(builder: Builder, node: SourceNode, x: Value, q: QParams) -> Value:
    """The integers of a value of real numbers."""
    reals = x.stored.reals if x.stored is not None else x.constant
    if reals is None:
        if x.dtype == "int32":
            x = builder.emit("cast", x, dtype="float32")
        return builder.emit_quantized("qnn.quantize", x, q)
    try:
        return Value.known(x.name, quantize(reals, q))
    except DataError as error:
        raise ModelError(f"node {node}: {shown(x.name)}: {error}") from None


@converter("DequantizeLinear", "x x_scale x_zero_point?", _ATTRS)
@converter("DequantizeLinear", "x x_scale x_zero_point?", _ATTRS, domain="com.microsoft")
def dequantize_linear(builder: Builder, node: SourceNode, x: Value, scale: Value, zero_point: Value | None) -> Value:
    """Real numbers; constants stay integers until something reads them."""
    dtype = integer_type(node, x.name, x.dtype)
    if node.integer("block_size", 0):
        return _by_blocks(node, x, dtype, scale, zero_point)
    q = qparams(node, x.name, x, dtype, scale, zero_point, node.integer("axis", 1))
    real = dequantized(builder, node, x, q)
    if scale.dtype == "float32":
        return real
    if real.stored is not None:
        return Value.dequantized(real.name, dataclasses.replace(real.stored, dtype=scale.dtype))
    return builder.emit("cast", real, dtype=scale.dtype)


def _by_blocks(node: SourceNode, x: Value, dtype: DType, scale: Value, zero_point: Value | None) -> Value:
    """A constant whose scales change within an axis: a matrix stays integers, others become real numbers."""
    axis, block = x.axis(node.integer("axis", 1)), node.integer("block_size", 0)
    if x.constant is None or scale.constant is None or (zero_point is not None and zero_point.constant is None):
        raise Unsupported(f"{shown(x.name)} is dequantized by blocks, but not constant")
    if block < 0:
        raise ModelError(f"node {node}: block_size={block}")
    expected = (*x.shape[:axis], -(-x.size(axis) // block), *x.shape[axis + 1 :])

    for value in (scale, zero_point):
        if value is not None and value.shape != expected:
            blocks = f"{shown(x.name)} in blocks of {block} along axis {axis} takes {expected}"
            raise ModelError(f"node {node}: {shown(value.name)} has the shape {value.shape}, but {blocks}")
    if x.rank == 2 and x.size(axis) % block == 0 and scale.dtype == "float32":
        scales: Array = np.asarray(scale.constant)
        zeros: Array = np.zeros(scales.shape, np.int64)
        if zero_point is not None:
            zeros = zeros + np.asarray(zero_point.constant).astype(np.int64)
        if axis == 0:
            scales, zeros = scales.T, zeros.T
        try:
            q = QParams(tuple(scales.ravel().tolist()), tuple(zeros.ravel().tolist()), dtype, 1 - axis, block)
        except QParamsError as error:
            raise ModelError(f"node {node}: {shown(x.name)}: {error}") from None
        return Value.dequantized(node.outputs[0], Stored(x.name, np.ascontiguousarray(x.constant), q, node.name))

    def spread(value: Value) -> Array:
        array = np.asarray(value.constant).astype(np.float32)
        return np.repeat(array, block, axis).take(range(x.size(axis)), axis)

    real, scales = x.constant.astype(np.float32), spread(scale)
    real = real if zero_point is None else real - spread(zero_point)
    return Value.known(node.outputs[0], (real * scales).astype(scale.dtype))


def dequantized(builder: Builder, node: SourceNode, x: Value, q: QParams) -> Value:
    """The real numbers of a value of integers."""
    if x.constant is not None:
        return Value.dequantized(node.outputs[0], Stored(x.name, np.asarray(x.constant, order="C"), q, node.name))
    known = builder.qparams.setdefault(x.name, q)
    builder.tell_table(x.name, q)
    if known != q:  # made with other scales than it is read with
        x = builder.emit_quantized("qnn.reinterpret", x, q)
    return builder.emit("qnn.dequantize", x)
