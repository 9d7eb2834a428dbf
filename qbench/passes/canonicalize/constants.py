"""Arithmetic with constants: fewer ops, and a bias where it is one."""

import dataclasses

import numpy as np

from qbench.ir.dtypes import is_float
from qbench.ir.graph import Node
from qbench.ir.op import Array, is_op
from qbench.ops.float.dense import BiasAdd
from qbench.ops.float.elementwise import Add, Multiply
from qbench.ops.float.select import Cast
from qbench.ops.products import SumOfProducts
from qbench.passes.canonicalize.rule import before, fuse, scalar, with_scalar
from qbench.passes.channels import channel_axis, per_channel
from qbench.passes.rewrite import Rewriter


def divide_to_multiply(rw: Rewriter, node: Node) -> bool:
    """x / c is x * (1 / c), and 1 / x the reciprocal."""
    data, divisor = node.inputs
    if not is_float(rw.types[node.output].dtype):
        return False
    if scalar(rw, data) == 1.0 and rw.types[divisor] == rw.types[node.output] and divisor not in rw.constants:
        return fuse(rw, (node,), "reciprocal", (divisor,))
    array = rw.array(divisor)
    if array is None or data in rw.constants:
        return False
    with np.errstate(all="ignore"):
        inverse = (1 / array.astype(np.float64)).astype(array.dtype)
    if not np.isfinite(inverse.astype(np.float64)).all():
        return False
    return fuse(rw, (node,), Multiply.name, (data, rw.constant(f"{divisor}.reciprocal", inverse)))


def subtract_to_add(rw: Rewriter, node: Node) -> bool:
    """x - c is x + (-c)."""
    data, other = node.inputs
    array = rw.array(other)
    if array is None or data in rw.constants or not is_float(rw.types[other].dtype):
        return False
    return fuse(rw, (node,), Add.name, (data, rw.constant(f"{other}.negative", -array)))


def add_to_bias_add(rw: Rewriter, node: Node) -> bool:
    """Adding a constant per channel to a layer's output, with its bias or scaled to real numbers, is a bias_add."""
    for data, other in (node.inputs, node.inputs[::-1]):
        array, layer = rw.array(other), rw.producer(data)
        type_ = rw.types[data]
        if array is None or layer is None or not is_float(type_.dtype) or type_ != rw.types[node.output]:
            continue
        if is_op(layer, SumOfProducts) or (is_op(layer, BiasAdd) and layer.inputs[1] in rw.constants):
            axis = channel_axis(rw, layer)
        elif is_op(layer, Multiply) and any(name in rw.constants or _is_cast(rw, name) for name in layer.inputs):
            axis = _axis_of(array, type_.rank)
        else:
            continue
        bias = None if axis is None else per_channel(array, type_.shape, axis)
        if bias is None:
            continue
        name = other if array.ndim == 1 and array.size == bias.size else rw.constant(f"{other}.bias", bias)
        rw.update(node, op=BiasAdd.name, inputs=(data, name), attrs=BiasAdd.given(axis=axis))
        return True
    return False


def _is_cast(rw: Rewriter, value: str) -> bool:
    """Whether a value is a layer's output as another dtype."""
    cast = rw.producer(value)
    return cast is not None and is_op(cast, Cast) and is_op(rw.producer(cast.inputs[0]), SumOfProducts)


def merge_biases(rw: Rewriter, node: Node) -> bool:
    """Of two biases in a row, along the same axis, one is enough."""
    first = before(rw, node, BiasAdd)
    if first is None or rw.attr(first, "axis") != rw.attr(node, "axis"):
        return False
    one, two = rw.array(first.inputs[1]), rw.array(node.inputs[1])
    if one is None or two is None:
        return False
    total = (one.astype(np.float64) + two).astype(two.dtype)
    bias = rw.changed_constant(node.inputs[1], node, total)
    merged = dataclasses.replace(node, inputs=(first.inputs[0], bias))
    return fuse(rw, (first, node), node.op, merged.inputs, **merged.attrs)


def power_to_product(rw: Rewriter, node: Node) -> bool:
    """x ** 2 is x * x, and x ** 0.5 the square root."""
    found = with_scalar(rw, node, commutes=False)
    if found is None or found[1] not in (2.0, 0.5):
        return False
    data, exponent = found
    if exponent == 2.0:
        return fuse(rw, (node,), Multiply.name, (data, data))
    return fuse(rw, (node,), "sqrt", (data,))


def _axis_of(array: Array, rank: int) -> int | None:
    """The one axis that a broadcasting constant runs along; None for a number, and where there are several."""
    along = [rank - array.ndim + axis for axis, size in enumerate(array.shape) if size > 1]
    return along[0] if len(along) == 1 else None
