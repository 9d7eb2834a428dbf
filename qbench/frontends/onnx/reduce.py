"""Reductions over axes."""

import numpy as np

from qbench.frontends.onnx.builder import Builder, Value
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter

_ATTRS = "axes keepdims noop_with_empty_axes"


def _axes(node: SourceNode, x: Value, given: Value | None) -> tuple[int, ...]:
    """Axes are an attribute, then (ReduceSum from opset 13, the others from 18) an input; none means all."""
    axes = (node.integers("axes") or ()) if given is None else given.integers()
    if not axes and not node.flag("noop_with_empty_axes"):
        return tuple(range(x.rank))
    return tuple(sorted(map(x.axis, axes)))


def _reduction(onnx_op: str, op: str, before: str = "", after: str = "") -> None:
    @converter(onnx_op, "data axes?", _ATTRS)
    def convert(builder: Builder, node: SourceNode, x: Value, axes: Value | None) -> Value:  # pyright: ignore[reportUnusedFunction] registered
        where = _axes(node, x, axes)
        if before == "square":
            x = builder.emit("multiply", x, x)
        elif before:
            x = builder.emit(before, x)
        kept = node.flag("keepdims", True)
        if where and x.dtype == "bool":
            numbers = builder.emit(op, builder.emit("cast", x, dtype="int32"), axes=where, keepdims=kept)
            return builder.emit("cast", numbers, dtype="bool")
        if where:
            x = builder.emit(op, x, axes=where, keepdims=kept)
        return builder.emit(after, x) if after else x


_reduction("ReduceMean", "mean")
_reduction("ReduceSum", "sum")
_reduction("ReduceProd", "prod")
_reduction("ReduceMax", "max")
_reduction("ReduceMin", "min")
_reduction("ReduceL1", "sum", before="abs")
_reduction("ReduceL2", "sum", before="square", after="sqrt")
_reduction("ReduceSumSquare", "sum", before="square")
_reduction("ReduceLogSum", "sum", after="log")


@converter("ReduceLogSumExp", "data axes?", _ATTRS)
def log_sum_exp(builder: Builder, node: SourceNode, x: Value, axes: Value | None) -> Value:
    """The logarithm of the sum of powers, shifted by the maximum so that nothing overflows."""
    where = _axes(node, x, axes)
    if not where:
        return x
    top = builder.emit("max", x, axes=where)
    powers = builder.emit("exp", builder.emit("subtract", x, top))
    y = builder.emit("add", builder.emit("log", builder.emit("sum", powers, axes=where)), top)
    return y if node.flag("keepdims", True) else builder.emit("squeeze", y, axes=where)


def _arg(onnx_op: str, op: str) -> None:
    @converter(onnx_op, "data", "axis keepdims select_last_index")
    def convert(builder: Builder, node: SourceNode, x: Value) -> Value:  # pyright: ignore[reportUnusedFunction] registered
        axis, keepdims = x.axis(node.integer("axis", 0)), node.flag("keepdims", True)
        if not node.flag("select_last_index"):
            return builder.emit(op, x, axis=axis, keepdims=keepdims)
        turned = builder.emit("strided_slice", x, begin=(-1,), end=(-(2**31) + 1,), strides=(-1,), axes=(axis,))
        index = builder.emit(op, turned, axis=axis, keepdims=keepdims)
        return builder.emit("subtract", np.asarray(x.size(axis) - 1, np.int64), index)


_arg("ArgMax", "argmax")
_arg("ArgMin", "argmin")
