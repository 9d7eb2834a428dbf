"""Bounds: maximum, minimum and chains of clips become one clip, or relu."""

import math

from qbench.ir.dtypes import is_float
from qbench.ir.graph import Node
from qbench.ir.op import is_op
from qbench.ops.float.activation import Clip, LeakyRelu, Relu
from qbench.ops.float.elementwise import Maximum, Multiply
from qbench.passes.canonicalize.rule import FLOAT_MAX, before, fuse, values, with_scalar
from qbench.passes.rewrite import Rewriter


def extremum_to_clip(rw: Rewriter, node: Node) -> bool:
    """maximum(x, c) and minimum(x, c) are clips that are open at one side."""
    found = with_scalar(rw, node)
    if found is None or math.isnan(found[1]):
        return False
    data, number = found
    low, high = (number, math.inf) if is_op(node, Maximum) else (-math.inf, number)
    return fuse(rw, (node,), Clip.name, (data,), a_min=low, a_max=high)


def clip_to_relu(rw: Rewriter, node: Node) -> bool:
    """clip(x, 0, inf) is relu."""
    if values(rw, node, "a_min") != (0.0,) or values(rw, node, "a_max")[0] < FLOAT_MAX:
        return False
    return fuse(rw, (node,), Relu.name, node.inputs)


def merge_clips(rw: Rewriter, node: Node) -> bool:
    """Of two bounds in a row, one is enough."""
    first = before(rw, node, Relu, Clip)
    if first is None or not is_float(rw.types[node.output].dtype):
        return False
    low, high = (max(min(bound, _bounds(rw, node)[1]), _bounds(rw, node)[0]) for bound in _bounds(rw, first))
    return fuse(rw, (first, node), Clip.name, first.inputs, a_min=low, a_max=high)


def scaled_maximum_to_leaky_relu(rw: Rewriter, node: Node) -> bool:
    """maximum(x, alpha * x), with alpha between 0 and 1, is leaky relu."""
    for data, other in (node.inputs, node.inputs[::-1]):
        product = rw.producer(other)
        if product is None or not is_op(product, Multiply) or rw.sole_consumer(other) != node:
            continue
        found = with_scalar(rw, product)
        if found is not None and found[0] == data and 0 <= found[1] <= 1:
            return fuse(rw, (product, node), LeakyRelu.name, (data,), alpha=found[1])
    return False


def _bounds(rw: Rewriter, node: Node) -> tuple[float, float]:
    return rw.op(node).bounds or (-math.inf, math.inf)
