"""Pools, global pools and reductions."""

from qbench.exporters.onnx.writer import Writer, exporter
from qbench.ir.graph import Node
from qbench.ops.float.pool import AvgPool2d, Pool2d
from qbench.ops.float.reduce import Reduction


@exporter("nn.max_pool2d", "nn.avg_pool2d")
def pool2d(writer: Writer, node: Node) -> None:
    """MaxPool or AveragePool."""
    op = writer.op(node, Pool2d)
    attrs: dict[str, object] = {
        "kernel_shape": op.pool_size,
        "strides": op.strides,
        "pads": op.padding,
        "dilations": op.dilation if max(op.dilation) > 1 else None,
        "ceil_mode": int(op.ceil_mode),
    }
    if isinstance(op, AvgPool2d):
        # without padding it means nothing, but onnxruntime's integer kernel then counts what ceil mode adds as well
        attrs["count_include_pad"] = int(op.count_include_pad and any(op.padding))
    onnx_op = "AveragePool" if isinstance(op, AvgPool2d) else "MaxPool"
    writer.emit(onnx_op, writer.inputs(node), node.outputs, node.name, **attrs)


_REDUCTIONS = {"mean": "ReduceMean", "sum": "ReduceSum", "prod": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin"}


@exporter(*_REDUCTIONS)
def reduction(writer: Writer, node: Node) -> None:
    """Over some axes."""
    op = writer.op(node, Reduction)
    axes = writer.integers(node, "axes", op.axes)
    inputs = [*writer.inputs(node), axes]
    writer.emit(_REDUCTIONS[node.op], inputs, node.outputs, node.name, keepdims=int(op.keepdims))
