"""Arithmetic, comparisons and choices over two or more tensors, with NumPy broadcasting."""

import numpy as np

from qbench.frontends.onnx.builder import Builder, Value
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter
from qbench.ops.float.einsum import DENSE

_BIASED = {"nn.dense": -1, "nn.conv2d": 1, "nn.conv2d_transpose": 1}
"""Ops whose constant addend is a bias, and the axis that the bias runs along."""


@converter("Add", "A B")
def add(builder: Builder, node: SourceNode, a: Value, b: Value) -> Value:
    """A constant that runs along the channels of a layer's output is its bias."""
    if a.fixed:
        return _biased(builder, b, a) or builder.emit("add", a, b)
    return _biased(builder, a, b) or builder.emit("add", a, b)


def _biased(builder: Builder, data: Value, addend: Value) -> Value | None:
    if builder.producer(data) not in _BIASED or not addend.fixed or addend.rank > data.rank:
        return None
    axis = data.axis(_BIASED[builder.producer(data) or ""])
    aligned = (1,) * (data.rank - addend.rank) + addend.shape
    if aligned != tuple(size if i == axis else 1 for i, size in enumerate(data.shape)):
        return None
    return builder.emit("nn.bias_add", data, builder.moved(addend, np.ravel), axis=axis)


@converter("Xor", "A B")
def xor(builder: Builder, node: SourceNode, a: Value, b: Value) -> Value:
    """Whether exactly one is true."""
    return builder.emit("logical_not", builder.emit("equal", a, b))


@converter("Pow", "X Y")
def power(builder: Builder, node: SourceNode, x: Value, y: Value) -> Value:
    """The exponent may be of another dtype than the base."""
    if y.constant is not None and x.dtype != y.dtype:
        y = builder.known(y, y.constant.astype(x.dtype))
    elif x.dtype != y.dtype:
        y = builder.emit("cast", y, dtype=x.dtype)
    return builder.emit("power", x, y)


@converter("Einsum", "*", "equation")
def einsum(builder: Builder, node: SourceNode, *values: Value) -> Value:
    """Without an arrow the result has the axes that stand once, in alphabetic order, behind those of the ellipsis."""
    equation = node.text("equation", "").replace(" ", "")
    if "->" not in equation:
        letters = equation.replace("...", "").replace(",", "")
        once = sorted(letter for letter in letters if letters.count(letter) == 1)
        equation += f"->{'...' if '...' in equation else ''}{''.join(once)}"
    if equation == DENSE and values[-1].fixed:
        return builder.emit("nn.dense", *values)
    return builder.emit("einsum", *values, equation=equation)


def _joined(builder: Builder, op: str, values: tuple[Value, ...]) -> Value:
    result = values[0]
    for value in values[1:]:
        result = builder.emit(op, result, value)
    return result


@converter("Sum", "*")
def sum_(builder: Builder, node: SourceNode, *values: Value) -> Value:
    """The sum of several tensors."""
    return _joined(builder, "add", values)


@converter("Max", "*")
def maximum(builder: Builder, node: SourceNode, *values: Value) -> Value:
    """The largest of several tensors."""
    return _joined(builder, "maximum", _without(-np.inf, values))


@converter("Min", "*")
def minimum(builder: Builder, node: SourceNode, *values: Value) -> Value:
    """The smallest of several tensors."""
    return _joined(builder, "minimum", _without(np.inf, values))


def _without(neutral: float, values: tuple[Value, ...]) -> tuple[Value, ...]:
    """Converters from other frameworks write the maximum with minus infinity."""
    return tuple(v for v in values if v.constant is None or v.rank or v.constant.item() != neutral) or values


@converter("Mean", "*")
def mean(builder: Builder, node: SourceNode, *values: Value) -> Value:
    """The mean of several tensors."""
    total = _joined(builder, "add", values)
    return total if len(values) == 1 else builder.emit("multiply", total, np.asarray(1 / len(values), total.dtype))
