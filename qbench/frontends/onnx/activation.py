"""Functions of one element, and softmax."""

from __future__ import annotations

from qbench.frontends.onnx.builder import Builder, Value
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter


def _unary(onnx_op: str, op: str) -> None:
    @converter(onnx_op, "X")
    def convert(builder: Builder, node: SourceNode, x: Value) -> Value:
        return builder.emit(op, x)


for _onnx_op, _op in {
    "Relu": "nn.relu",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
}.items():
    _unary(_onnx_op, _op)


@converter("Softmax", "input", "axis")
def softmax(builder: Builder, node: SourceNode, x: Value) -> Value:
    """Before opset 13 the input is first made a matrix, rows before `axis` and columns from it on."""
    return _softmax(builder, node, x, "nn.softmax")


@converter("LogSoftmax", "input", "axis")
def log_softmax(builder: Builder, node: SourceNode, x: Value) -> Value:
    """As softmax."""
    return _softmax(builder, node, x, "nn.log_softmax")


def _softmax(builder: Builder, node: SourceNode, x: Value, op: str) -> Value:
    axis = x.axis(node.integer("axis", -1 if node.opset >= 13 else 1))
    wide = [i for i in range(axis, x.rank) if x.shape[i] != 1]
    if node.opset < 13 and len(wide) > 1:
        flat = builder.emit("reshape", x, newshape=(*x.shape[:axis], -1))
        return builder.emit("reshape", builder.emit(op, flat), newshape=x.shape)
    if node.opset < 13 and wide:
        axis = wide[0]
    return builder.emit(op, x, axis=-1 if axis == x.rank - 1 else axis)
