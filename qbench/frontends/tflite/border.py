"""Where real numbers become integers, integers others, and back."""

import numpy as np

from qbench.errors import ModelError, shown
from qbench.frontends.tflite.builder import Builder, Unsupported, Value
from qbench.frontends.tflite.elements import TYPES
from qbench.frontends.tflite.quantized import quantized
from qbench.frontends.tflite.source import SourceOperator
from qbench.frontends.tflite.table import converter
from qbench.ir.dtypes import is_dtype


@converter("QUANTIZE", "x", "QuantizeOptions")
def quantize(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """Real numbers, or integers of another scale, to integers of this one."""
    if builder.q is None:
        raise ModelError(f"operator {op} makes {shown(builder.result.name)}, which has no scale")
    data = builder.natural(x)
    if builder.is_real and not x.is_float:  # the builder quantizes what is real
        return builder.emit("qnn.dequantize", data)
    if x.is_float:
        return builder.emit("qnn.quantize", data, q=builder.q, ties="away" if builder.semantics == "tflite" else "even")
    if x.q is None:
        raise ModelError(f"operator {op} reads {shown(x.name)}, which is {x.dtype} without a scale")
    return quantized(builder, "qnn.quantize", (data,))


@converter("DEQUANTIZE", "x", "DequantizeOptions")
def dequantize(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """Integers to real numbers; weights of float16 to float32."""
    if x.is_float:
        if x.constant is not None:
            return builder.known(x.constant.astype(np.float32), builder.result.name)
        return builder.emit("cast", builder.natural(x), dtype="float32")
    if x.q is None:
        raise ModelError(f"operator {op} reads {shown(x.name)}, which is {x.dtype} without a scale")
    return builder.emit("qnn.dequantize", builder.natural(x))


@converter("DENSIFY", "x", "DensifyOptions")
def densify(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """A sparse constant with its zeros, which it has from the reader on."""
    if x.constant is None:
        raise Unsupported("sparse data that is computed")
    return builder.known(x.constant, builder.result.name)


@converter("CAST", "x", "CastOptions in_data_type out_data_type")
def cast(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """The numbers as another type; the tensors' own types decide."""
    dtype = builder.result.dtype
    if not is_dtype(dtype) or dtype not in TYPES:
        raise Unsupported(f"a cast to {dtype}")
    return builder.emit("cast", builder.natural(x), q=builder.q, dtype=dtype)
