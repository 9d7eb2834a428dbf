"""Functions of one element or of several, and softmax."""

import numpy as np

from qbench.exporters.onnx.writer import Writer, exporter
from qbench.forms.tables import reaches_one
from qbench.ir.dtypes import is_integer
from qbench.ir.graph import Node
from qbench.ops.float.activation import Clip, PRelu
from qbench.ops.float.softmax import Softmax


@exporter("nn.relu")
def relu(writer: Writer, node: Node) -> None:
    """Of integers a Clip: onnxruntime has Relu for few kinds of them."""
    dtype, inputs = writer.graph.types[node.output].dtype, writer.inputs(node)
    if is_integer(dtype):
        writer.emit("Clip", [*inputs, writer.constant(node, "min", 0, dtype)], node.outputs, node.name)
    else:
        writer.emit("Relu", inputs, node.outputs, node.name)


@exporter("clip")
def clip(writer: Writer, node: Node) -> None:
    """Bounds are inputs; one at the end of float32's range is left out."""
    op, largest = writer.op(node, Clip), float(np.finfo(np.float32).max)
    bounds = ["" if op.a_min <= -largest else writer.number(node, "min", op.a_min)]
    bounds += [] if op.a_max >= largest else [writer.number(node, "max", op.a_max)]
    writer.emit("Clip", [*writer.inputs(node), *bounds], node.outputs, node.name)


@exporter("nn.silu")
def silu(writer: Writer, node: Node) -> None:
    """x * sigmoid(x)."""
    (x,) = writer.inputs(node)
    writer.emit("Mul", [x, writer.step(node, "Sigmoid", [x])], node.outputs, node.name)


@exporter("nn.prelu")
def prelu(writer: Writer, node: Node) -> None:
    """Slopes are shaped to broadcast along their axis."""
    data, alpha = node.inputs
    rank = writer.type(data).rank
    axis = writer.op(node, PRelu).axis % rank
    shape = (-1, *[1] * (rank - 1 - axis))
    if alpha in writer.graph.constants:
        slopes = writer.store(alpha, writer.graph.constants[alpha].array.reshape(shape))
    else:
        wanted = writer.integers(node, "slope.shape", shape)
        slopes = writer.step(node, "Reshape", [writer.read(alpha), wanted])
    writer.emit("PRelu", [writer.read(data), slopes], node.outputs, node.name)


@exporter("nn.softmax")
def softmax(writer: Writer, node: Node) -> None:
    """Along one axis.

    onnxruntime makes one integer op of it and the QuantizeLinear after it, and there, what is beyond the largest
    integer wraps around to zero. Where the qparams clip, a Min in between keeps the two apart.
    """
    graph, op = writer.graph, writer.op(node, Softmax)
    faked = (reader.output for reader in graph.consumers[node.output] if reader.op == "qnn.fake_quantize")
    q = next((graph.qparams[value] for value in faked if value in graph.qparams), None)
    whole = q is None or q.dtype not in ("int8", "uint8") or reaches_one(q)
    y = node.output if whole and not op.safe else writer.fresh(f"{node.output}.{'unsafe' if op.safe else 'unclipped'}")
    writer.emit("Softmax", writer.inputs(node), [y], node.name, axis=op.axis)
    if op.safe:
        choice = [writer.step(node, "IsNaN", [y]), writer.number(node, "masked", 0), y]
        y = node.output if whole else writer.fresh(f"{node.output}.unclipped")
        writer.emit("Where", choice, [y], writer.fresh(f"{node.name}.Where"))
    if q is not None and not whole:
        limits = [y, writer.number(node, "largest", q.scales[0] * (q.qmax - q.zero_points[0]))]
        writer.emit("Min", limits, node.outputs, writer.fresh(f"{node.name}.Min"))
