"""Recurrent layers."""

import numpy as np

from qbench.errors import ExportError, shown
from qbench.exporters.onnx.nbits import DOMAIN
from qbench.exporters.onnx.writer import Writer, exporter
from qbench.ir.graph import Node
from qbench.ops.float.recurrent import Gru, Recurrent
from qbench.ops.onnx.dynamic import DynamicLstm

_NAMES = {"nn.gru": "GRU", "nn.lstm": "LSTM", "nn.rnn": "RNN"}


@exporter(*_NAMES)
def recurrent(writer: Writer, node: Node) -> None:
    """The operands are ONNX's, all sequences as long as the data."""
    op = writer.op(node, Recurrent)
    data, kernel, recurrence, offset, *states = writer.inputs(node)
    writer.emit(
        _NAMES[node.op],
        [data, kernel, recurrence, offset, "", *states],
        node.outputs,
        node.name,
        direction=op.direction,
        hidden_size=writer.type(node.inputs[2]).shape[2],
        linear_before_reset=int(op.linear_before_reset) if isinstance(op, Gru) else None,
    )


@exporter("nn.dynamic_lstm")
def dynamic_lstm(writer: Writer, node: Node) -> None:
    """onnxruntime's own op, with the integers that the weights are made of."""
    op = writer.op(node, DynamicLstm)
    data, _, _, offset, *others = writer.inputs(node)
    states, (peepholes,) = others[: op.states], others[op.states :] or [""]
    weights, scales = list[str](), list[str]()
    for name, steps in zip(node.inputs[1:3], np.split(np.asarray(op.steps, np.float32), 2), strict=True):
        if name not in writer.graph.constants:
            raise ExportError(f"node {shown(node.name)}: its weight {shown(name)} is not constant")
        real = writer.graph.constants[name].array
        steps = steps.reshape(len(real), -1)
        integers = np.rint(real.transpose(0, 2, 1) / steps[:, None])
        if np.abs(integers).max(initial=0) > 128 or integers.max(initial=0) > 127:
            raise ExportError(f"node {shown(node.name)}: the integers of its weight {shown(name)} need more than int8")
        weights.append(writer.store(f"{name}.integers", integers.astype(np.int8)))
        zeros = np.zeros(steps.shape if steps.shape[1] > 1 else len(real), np.int8)
        scales += [writer.store(f"{name}.scale", steps.reshape(zeros.shape)), writer.store(f"{name}.zero_point", zeros)]
    writer.emit(
        "DynamicQuantizeLSTM",
        [data, *weights, offset, "", *states, peepholes, *scales],
        node.outputs,
        node.name,
        domain=DOMAIN,
        direction=op.direction,
        hidden_size=writer.type(node.inputs[2]).shape[2],
    )
