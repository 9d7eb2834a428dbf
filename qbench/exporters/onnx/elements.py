"""Functions of one element or of several, and softmax."""

import numpy as np

from qbench.exporters.onnx.writer import Writer, exporter
from qbench.forms.tables import reaches_one
from qbench.ir.dtypes import is_integer
from qbench.ir.graph import Node
from qbench.ops.float.activation import Clip, Elu, Gelu, HardSigmoid, LeakyRelu, PRelu
from qbench.ops.float.softmax import LogSoftmax, Softmax

_SAME_IN_ONNX = {
    "abs": "Abs",
    "acos": "Acos",
    "acosh": "Acosh",
    "add": "Add",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "divide": "Div",
    "equal": "Equal",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
    "is_nan": "IsNaN",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "log": "Log",
    "logical_and": "And",
    "logical_not": "Not",
    "logical_or": "Or",
    "maximum": "Max",
    "minimum": "Min",
    "multiply": "Mul",
    "negative": "Neg",
    "nn.hard_swish": "HardSwish",
    "nn.softplus": "Softplus",
    "power": "Pow",
    "reciprocal": "Reciprocal",
    "round": "Round",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "subtract": "Sub",
    "tan": "Tan",
    "tanh": "Tanh",
    "where": "Where",
}


@exporter(*_SAME_IN_ONNX)
def same(writer: Writer, node: Node) -> None:
    """An op without attributes that ONNX has too."""
    writer.emit(_SAME_IN_ONNX[node.op], writer.inputs(node), node.outputs, node.name)


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


@exporter("nn.leaky_relu")
def leaky_relu(writer: Writer, node: Node) -> None:
    """x, or alpha * x below zero."""
    writer.emit("LeakyRelu", writer.inputs(node), node.outputs, node.name, alpha=writer.op(node, LeakyRelu).alpha)


@exporter("nn.elu")
def elu(writer: Writer, node: Node) -> None:
    """x, or alpha * (exp(x) - 1) below zero."""
    writer.emit("Elu", writer.inputs(node), node.outputs, node.name, alpha=writer.op(node, Elu).alpha)


@exporter("nn.hard_sigmoid")
def hard_sigmoid(writer: Writer, node: Node) -> None:
    """alpha * x + beta between 0 and 1."""
    op = writer.op(node, HardSigmoid)
    writer.emit("HardSigmoid", writer.inputs(node), node.outputs, node.name, alpha=op.alpha, beta=op.beta)


@exporter("nn.gelu")
def gelu(writer: Writer, node: Node) -> None:
    """Exact, or by the tanh formula."""
    approximate = writer.op(node, Gelu).approximate
    writer.emit("Gelu", writer.inputs(node), node.outputs, node.name, approximate=approximate)


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
    graph, axis = writer.graph, writer.op(node, Softmax).axis
    faked = (reader.output for reader in graph.consumers[node.output] if reader.op == "qnn.fake_quantize")
    q = next((graph.qparams[value] for value in faked if value in graph.qparams), None)
    if q is None or q.dtype not in ("int8", "uint8") or reaches_one(q):
        writer.emit("Softmax", writer.inputs(node), node.outputs, node.name, axis=axis)
        return
    raw = writer.fresh(f"{node.output}.unclipped")
    writer.emit("Softmax", writer.inputs(node), [raw], node.name, axis=axis)
    limits = [raw, writer.number(node, "largest", q.scales[0] * (q.qmax - q.zero_points[0]))]
    writer.emit("Min", limits, node.outputs, writer.fresh(f"{node.name}.Min"))


@exporter("nn.log_softmax")
def log_softmax(writer: Writer, node: Node) -> None:
    """Along one axis."""
    writer.emit("LogSoftmax", writer.inputs(node), node.outputs, node.name, axis=writer.op(node, LogSoftmax).axis)
