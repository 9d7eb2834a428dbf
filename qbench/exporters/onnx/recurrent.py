"""Recurrent layers."""

from qbench.exporters.onnx.writer import Writer, exporter
from qbench.ir.graph import Node
from qbench.ops.float.recurrent import Gru, Recurrent


@exporter("nn.lstm", "nn.gru")
def recurrent(writer: Writer, node: Node) -> None:
    """The operands are ONNX's, all sequences as long as the data."""
    op = writer.op(node, Recurrent)
    data, kernel, recurrence, offset, *states = writer.inputs(node)
    writer.emit(
        "GRU" if isinstance(op, Gru) else "LSTM",
        [data, kernel, recurrence, offset, "", *states],
        node.outputs,
        node.name,
        direction=op.direction,
        hidden_size=writer.type(node.inputs[2]).shape[2],
        linear_before_reset=int(op.linear_before_reset) if isinstance(op, Gru) else None,
    )
