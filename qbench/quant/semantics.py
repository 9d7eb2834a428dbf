"""Whose arithmetic a quantized graph computes in: each runtime rounds, and orders its steps, in its own way."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from qbench.ir.dtypes import DType
from qbench.quant.rounding import Rounding

__all__ = ["SEMANTICS", "Semantics", "accumulator_scale", "rounding_of"]

Semantics = Literal["tflite", "onnx", "tvm"]
"""
``tflite``
    LiteRT's reference kernels (``BUILTIN_REF``).
``onnx``
    onnxruntime's CPU kernels.
``tvm``
    TVM's QNN dialect.
"""

SEMANTICS: tuple[Semantics, ...] = get_args(Semantics)

_ROUNDINGS: dict[Semantics, Rounding] = {"tflite": "tflite_double", "onnx": "fp32_rne", "tvm": "tvm_upward"}

_EXCEPTIONS: dict[tuple[Semantics, str], Rounding] = {("tflite", "qnn.dense"): "fp64_away"}
"""Where a runtime rounds one op otherwise than the rest."""


def rounding_of(semantics: Semantics, op: str) -> Rounding:
    """How a runtime rounds the requantize that follows an op, or that is part of it.

    Parameters
    ----------
    semantics
        The runtime.
    op
        Name of a qnn op; for a requantize, that of the op whose accumulator it narrows.
    """
    return _EXCEPTIONS.get((semantics, op), _ROUNDINGS[semantics])


def accumulator_scale(semantics: Semantics, op: str, dtype: DType, data: float, weight: float, out: float) -> float:
    """The scale of an accumulator, so that its ratio to the output's is the multiplier that the runtime computes.

    Parameters
    ----------
    semantics, op
        The runtime, and the name of the qnn op that multiplies.
    dtype
        Of the data.
    data, weight, out
        Scales of the two factors and of the requantized result.

    Returns
    -------
    The product of the scales. TFLite's 8-bit unsigned convolutions and its matrix products round it to float32, and its
    multiplication rounds the ratio too.
    """
    if semantics == "tflite":
        rounded = np.float32(data) * np.float32(weight)
        if op == "qnn.multiply":
            return float(rounded / np.float32(out)) * out
        if op == "qnn.batch_matmul" or (dtype == "uint8" and op != "qnn.dense"):
            return float(rounded)
    return data * weight
