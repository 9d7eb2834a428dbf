"""Ops that pick, sort, count and write elements by index."""

import numpy as np

from qbench.errors import ModelError
from qbench.frontends.onnx.builder import Builder, Unsupported, Value
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter


@converter("GatherElements", "data indices", "axis")
def gather_elements(builder: Builder, node: SourceNode, x: Value, indices: Value) -> Value:
    """Along one axis, for each place of the others."""
    return builder.emit("take_along_axis", x, indices, axis=x.axis(node.integer("axis", 0)))


@converter("ScatterElements Scatter", "data indices updates", "axis reduction")
def scatter_elements(builder: Builder, node: SourceNode, x: Value, indices: Value, updates: Value) -> Value:
    """Along one axis."""
    attrs = {"axis": x.axis(node.integer("axis", 0)), "reduction": node.text("reduction", "none")}
    return builder.emit("scatter_elements", x, indices, updates, **attrs)


@converter("TopK", "X K?", "axis k largest sorted")
def topk(builder: Builder, node: SourceNode, x: Value, k: Value | None) -> tuple[Value, ...]:
    """How many is an attribute before opset 10, then an input."""
    (count,) = (node.integer("k", 0),) if k is None else k.dims()
    attrs = {"axis": node.integer("axis", -1), "k": count, "largest": node.flag("largest", True)}
    return builder.emit_many("topk", (x,), 2, **attrs)


@converter("CumSum", "x axis", "exclusive reverse")
def cumsum(builder: Builder, node: SourceNode, x: Value, axis: Value) -> Value:
    """Sums that grow."""
    (along,) = axis.integers()
    attrs = {"exclusive": node.flag("exclusive"), "reverse": node.flag("reverse")}
    return builder.emit("cumsum", x, axis=x.axis(along), **attrs)


@converter("Hardmax", "input", "axis")
def hardmax(builder: Builder, node: SourceNode, x: Value) -> Value:
    """1 at the first of the largest along an axis, else 0; before opset 13 of all axes from that one on."""
    axis = x.axis(node.integer("axis", -1 if node.opset >= 13 else 1))
    if node.opset < 13 and axis != x.rank - 1:
        raise Unsupported("several axes together")
    best = builder.emit("argmax", x, axis=axis, keepdims=False)
    return builder.emit("one_hot", best, np.asarray([0, 1], x.dtype), places=x.size(axis), axis=axis)


@converter("OneHot", "indices depth values", "axis")
def one_hot(builder: Builder, node: SourceNode, x: Value, depth: Value, values: Value) -> Value:
    """A new axis."""
    (count,) = depth.integers()
    return builder.emit("one_hot", x, values, places=count, axis=node.integer("axis", -1))


@converter("Trilu", "input k?", "upper")
def trilu(builder: Builder, node: SourceNode, x: Value, k: Value | None) -> Value:
    """A triangle of each matrix."""
    (diagonal,) = (0,) if k is None else k.dims()
    return builder.emit("triangle", x, k=diagonal, upper=node.flag("upper", True))


@converter("EyeLike", "input", "dtype k")
def eye_like(builder: Builder, node: SourceNode, x: Value) -> Value:
    """Ones on a diagonal, of a matrix whose sizes are known."""
    if x.rank != 2:
        raise ModelError(f"node {node}: its input has {x.rank} dimensions, not 2")
    if "dtype" in node.attrs:
        raise Unsupported("a dtype of its own")
    return Value.known(node.outputs[0], np.eye(x.size(0), x.size(1), node.integer("k", 0), x.dtype))
