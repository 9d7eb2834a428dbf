"""Arithmetic of two or more tensors, with NumPy broadcasting."""

from __future__ import annotations

from qbench.frontends.onnx.builder import Builder, Value
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter

_BIASED = {"nn.dense": -1, "nn.conv2d": 1, "nn.conv2d_transpose": 1}
"""Ops whose constant addend is a bias, and the axis that the bias runs along."""


@converter("Add", "A B")
def add(builder: Builder, node: SourceNode, a: Value, b: Value) -> Value:
    """A constant that runs along the channels of a layer's output is its bias."""
    if a.array is not None:
        return _biased(builder, b, a) or builder.emit("add", a, b)
    return _biased(builder, a, b) or builder.emit("add", a, b)


def _biased(builder: Builder, data: Value, addend: Value) -> Value | None:
    if builder.producer(data) not in _BIASED or addend.constant is None or addend.rank > data.rank:
        return None
    axis = data.axis(_BIASED[builder.producer(data) or ""])
    aligned = (1,) * (data.rank - addend.rank) + addend.shape
    if aligned != tuple(size if i == axis else 1 for i, size in enumerate(data.shape)):
        return None
    return builder.emit("nn.bias_add", data, builder.known(addend, addend.constant.reshape(-1)), axis=axis)


def _binary(onnx_op: str, op: str) -> None:
    @converter(onnx_op, "A B")
    def convert(builder: Builder, node: SourceNode, a: Value, b: Value) -> Value:
        return builder.emit(op, a, b)


for _onnx_op, _op in {
    "Sub": "subtract",
    "Mul": "multiply",
    "Div": "divide",
    "Pow": "power",
}.items():
    _binary(_onnx_op, _op)
