"""Whose arithmetic a quantized graph computes in: each runtime rounds, and orders its steps, in its own way."""

from typing import Literal, get_args

from qbench.quant.rounding import Rounding

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
