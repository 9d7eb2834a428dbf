"""Pools over windows and over whole images."""

from qbench.errors import ModelError
from qbench.frontends.onnx.builder import Builder, Value
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.onnx.table import converter
from qbench.frontends.onnx.volumes import pool3d
from qbench.frontends.onnx.window import flat_again, flattened, spatial, window
from qbench.ir.graph import Attr

_ATTRS = "auto_pad ceil_mode dilations kernel_shape pads strides"


@converter("MaxPool", "X", _ATTRS + " storage_order")  # storage_order is about the output Indices only
def max_pool(builder: Builder, node: SourceNode, x: Value) -> Value:
    """The maximum of each window."""
    return _pool(builder, node, x, "nn.max_pool2d")


@converter("AveragePool", "X", _ATTRS + " count_include_pad")
def average_pool(builder: Builder, node: SourceNode, x: Value) -> Value:
    """The mean of each window."""
    return _pool(builder, node, x, "nn.avg_pool2d", count_include_pad=node.flag("count_include_pad"))


def _pool(builder: Builder, node: SourceNode, x: Value, op: str, **attrs: Attr) -> Value:
    rank = spatial(node, x, most=3)
    kernel = node.integers("kernel_shape")
    if kernel is None or len(kernel) != rank:
        raise ModelError(f"node {node}: kernel_shape {kernel} should have {rank} numbers")
    if rank == 3:
        return pool3d(builder, x, op, kernel, window(node, x, kernel, rank), ceil_mode=node.flag("ceil_mode"), **attrs)
    x = flattened(builder, x)
    kernel = (1,) * (2 - rank) + kernel
    is_same = node.text("auto_pad", "NOTSET").startswith("SAME")  # a whole number of windows, of any size
    rounds_up = is_same and not node.flag("count_include_pad") and any(isinstance(size, str) for size in x.shape[2:])
    where = window(node, x, kernel, rank, rounds_up=rounds_up)
    y = builder.emit(op, x, pool_size=kernel, **where.attrs, ceil_mode=node.flag("ceil_mode") or rounds_up, **attrs)
    return flat_again(builder, y, rank)


@converter("GlobalAveragePool", "X")
def global_average_pool(builder: Builder, node: SourceNode, x: Value) -> Value:
    """The mean of each channel."""
    if x.rank == 4:
        return builder.emit("nn.global_avg_pool2d", x)
    return builder.emit("mean", x, axes=tuple(range(2, x.rank)))


@converter("GlobalMaxPool", "X")
def global_max_pool(builder: Builder, node: SourceNode, x: Value) -> Value:
    """The maximum of each channel."""
    if x.rank == 4:
        return builder.emit("nn.global_max_pool2d", x)
    return builder.emit("max", x, axes=tuple(range(2, x.rank)))
