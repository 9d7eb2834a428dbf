"""Vectors divided by their lengths, written as several ops."""

import math

from qbench.ir.graph import Node
from qbench.ir.op import OPS, is_op
from qbench.ops.float.activation import Clip
from qbench.ops.float.elementwise import Divide, Multiply
from qbench.ops.float.norm import L2Normalize
from qbench.ops.float.reduce import Sum
from qbench.passes.canonicalize.rule import FLOAT_MAX, before, fuse, values
from qbench.passes.rewrite import Rewriter

_PARTS = (Clip, OPS["sqrt"])


def recognize_l2_normalize(rw: Rewriter, node: Node) -> bool:
    """x / max(sqrt(sum(x * x)), a), or x times the reciprocal of that, with the bound before the root or behind it."""
    lhs, rhs = node.inputs
    if is_op(node, Divide):
        return _divided(rw, lhs, rhs, (node,))
    for data, other in ((lhs, rhs), (rhs, lhs)):
        inverse = rw.producer(other)
        if inverse is not None and inverse.op == "reciprocal" and rw.sole_consumer(other) == node:
            return _divided(rw, data, inverse.inputs[0], (inverse, node))
    return False


def _divided(rw: Rewriter, data: str, norm: str, after: tuple[Node, ...]) -> bool:
    last = rw.producer(norm)
    if last is None or not is_op(last, *_PARTS) or rw.sole_consumer(norm) != after[0]:
        return False
    first = before(rw, last, *_PARTS)
    total = None if first is None else before(rw, first, Sum)
    square = None if total is None else before(rw, total, Multiply)
    if first is None or total is None or square is None or square.inputs != (data, data):
        return False
    bounds = [one for one in (first, last) if is_op(one, Clip)]
    if len(bounds) != 1:
        return False
    (low, high), (axes, kept) = values(rw, bounds[0], "a_min", "a_max"), values(rw, total, "axes", "keepdims")
    if high < FLOAT_MAX or low < 0 or len(axes) != 1 or not kept:
        return False
    epsilon = low if last is bounds[0] else math.sqrt(low)
    nodes = (square, total, first, last, *after)
    return fuse(rw, nodes, L2Normalize.name, (data,), axis=axes[0], epsilon=epsilon)
