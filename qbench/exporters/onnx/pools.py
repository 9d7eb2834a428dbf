"""Pools, global pools and reductions."""

from qbench.exporters.onnx.writer import Writer, exporter
from qbench.ir.graph import Node
from qbench.ops.float.pool import AvgPool2d, Pool2d


@exporter("nn.max_pool2d", "nn.avg_pool2d")
def pool2d(writer: Writer, node: Node) -> None:
    """MaxPool or AveragePool.

    A window that sticks out is written as padding where that changes no count: of ceil mode, ONNX's own shapes and
    onnxruntime's kernels have different ideas (a last window that starts behind the data).
    """
    op = writer.op(node, Pool2d)
    window = op.rounded_down(writer.type(node.inputs[0]))
    attrs: dict[str, object] = {
        "kernel_shape": window.size,
        "strides": window.strides,
        "pads": window.padding,
        "dilations": window.dilation if max(window.dilation) > 1 else None,
        "ceil_mode": int(window.ceil_mode),
    }
    if isinstance(op, AvgPool2d):
        # without padding it means nothing, but onnxruntime's integer kernel then counts what is beyond it as well
        attrs["count_include_pad"] = int(op.counts_padding)
    onnx_op = "AveragePool" if isinstance(op, AvgPool2d) else "MaxPool"
    writer.emit(onnx_op, writer.inputs(node), node.outputs, node.name, **attrs)
