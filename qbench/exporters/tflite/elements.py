"""Functions of one element and of two, reductions, normalizations, and where reals become integers and back."""

from typing import Any

import numpy as np

from qbench.exporters.tflite.fused import activation_of, check_rounding, followers
from qbench.exporters.tflite.norms import l2_normalize
from qbench.exporters.tflite.writer import Inexpressible, Layout, Writer, exporter
from qbench.formats.tflite import FUNCTIONS, REDUCTIONS, TO_NHWC
from qbench.ir.graph import Node
from qbench.ir.op import OPS, bind
from qbench.ops.float.norm import L2Normalize
from qbench.ops.qnn.base import QnnOp
from qbench.ops.tflite.normalize import LEAST_NORM
from qbench.ops.tflite.pairs import TFLITE_PAIRS

_TABLES = FUNCTIONS | {
    "negative": ("NEG", "NegOptions"),
    "nn.leaky_relu": ("LEAKY_RELU", "LeakyReluOptions"),
    "nn.relu": ("RELU", ""),
    "rsqrt": ("RSQRT", ""),
}
_INTEGER = ("sigmoid", "tanh", "nn.hard_swish", "nn.leaky_relu", "rsqrt", "sqrt")
"""Functions with kernels of their own for integers of 8 bits; the others become tables."""
_INTEGER_16 = ("abs", "exp", "log", "nn.gelu", "nn.hard_swish", "nn.leaky_relu", "rsqrt", "sigmoid", "sqrt", "tanh")
"""Those with kernels for 16 bits, of which there are no tables."""
_FIXED = {
    ("sigmoid", "int8"): (1 / 256, -128),
    ("tanh", "int8"): (1 / 128, 0),
    **dict.fromkeys((("sigmoid", "int16"), ("tanh", "int16")), (1 / 32768, 0)),
}
_REAL_PAIRS = {
    "add": ("ADD", "AddOptions"),
    "subtract": ("SUB", "SubOptions"),
    "multiply": ("MUL", "MulOptions"),
    "divide": ("DIV", "DivOptions"),
    "maximum": ("MAXIMUM", "MaximumMinimumOptions"),
    "minimum": ("MINIMUM", "MaximumMinimumOptions"),
    "power": ("POW", "PowOptions"),
    "squared_difference": ("SQUARED_DIFFERENCE", "SquaredDifferenceOptions"),
}
_NOT_FUSING = ("MAXIMUM", "MINIMUM", "POW", "SQUARED_DIFFERENCE")
_PAIRS = _REAL_PAIRS | {f"qnn.{name}": _REAL_PAIRS[name] for name in ("add", "subtract", "multiply")}


@exporter(*(name for name in _TABLES))
def function(writer: Writer, node: Node) -> None:
    """A function of one real number (a relu: of an integer too)."""
    if node.inputs[0] in writer.graph.qparams and node.op != "nn.relu":
        raise Inexpressible("integers that are taken as they stand")
    code, table = _TABLES[node.op]
    options = {"alpha": writer.op(node).alpha} if node.op == "nn.leaky_relu" else {}
    writer.write(node, code, table, **options)


@exporter("qnn.unary")
def unary(writer: Writer, node: Node) -> None:
    """TFLite's kernel where it has one for these scales; else a table, looked up by GATHER."""
    op, q = writer.op(node), writer.q(node.output)
    dtype, made = ("", ()) if q is None else (q.dtype, (q.scales[0], q.zero_points[0]))
    fits = not any(function == op.function for function, _ in _FIXED) or _FIXED.get((op.function, dtype)) == made
    if op.semantics == "tflite" and op.function in (_INTEGER_16 if dtype == "int16" else _INTEGER) and fits:
        code, table = _TABLES.get(op.function, ("GELU", "GeluOptions"))
        function = OPS[op.function](**dict(op.parameters))
        options = {key: getattr(function, key) for key in function.attributes()}
        options = {key: value == "tanh" if key == "approximate" else value for key, value in options.items()}
        writer.write(node, code, table, **options)
        return
    _looked_up(writer, node)


def _looked_up(writer: Writer, node: Node) -> None:
    """Integers as int32 numbers from 0, which pick elements of a constant: exact for any function."""
    op, data = bind(node, writer.graph.qparams), node.inputs[0]
    layout = writer.layout(data)
    source = writer.read(data, layout)
    if not isinstance(op, QnnOp) or writer.tensors[source].dtype not in ("int8", "uint8"):
        raise Inexpressible("a function of integers of more than 8 bits")
    lowered = op.lowered((writer.graph.types[data],))
    table = lowered.constants["table"].array if "table" in lowered.constants else None
    if table is None or table.ndim != 1:
        raise Inexpressible("a function of integers that differs from channel to channel")
    wide = writer.scratch(f"{node.name}.code", source, None, "int32")
    writer.emit("CAST", [source], [wide], "CastOptions")
    smallest = writer.bounds(data)[0]
    if smallest:
        place = writer.scratch(f"{node.name}.place", source, None, "int32")
        offset = writer.constant(f"{node.name}.offset", np.asarray([-smallest], np.int32))
        writer.emit("ADD", [wide, offset], [place], "AddOptions")
        wide = place
    q = writer.q(node.output)
    entries = table.astype(np.int32) - writer.offset(node.output)
    stored = writer.constant(f"{node.name}.table", entries.astype(q.dtype if q is not None else table.dtype), q)
    writer.emit("GATHER", [stored, wide], [writer.make(node.output, layout)], "GatherOptions")


@exporter("qnn.binary")
def binary(writer: Writer, node: Node) -> None:
    """What TFLite has integer arithmetic for and the others not."""
    op = writer.op(node)
    if op.semantics != "tflite" or op.function not in TFLITE_PAIRS:
        raise Inexpressible(f"{op.function} of two tensors of integers")
    _pair(writer, node, op.function)


@exporter(*_PAIRS)
def pair(writer: Writer, node: Node) -> None:
    """Arithmetic on two tensors, with NumPy's broadcasting."""
    _pair(writer, node, node.op)


def _pair(writer: Writer, node: Node, op: str) -> None:
    code, table = _PAIRS[op]
    if node.op in ("qnn.add", "qnn.subtract") and writer.op(node).semantics != "tflite":
        raise Inexpressible("sums in another arithmetic than TFLite's")
    after = None if code in _NOT_FUSING else followers(writer, node)
    options: dict[str, Any] = {} if after is None else {"fused_activation_function": after.activation}
    writer.write(node, code, table, makes="" if after is None else after.output, **options)


@exporter("nn.bias_add")
def bias_add(writer: Writer, node: Node) -> None:
    """A bias on real numbers that no layer took with it."""
    if node.output in writer.graph.qparams:
        raise Inexpressible("a bias that is added to integers on its own")
    data, bias = node.inputs
    layout, rank = writer.layout(data), writer.rank(data)
    inputs = [writer.read(data, layout), writer.along(bias, writer.op(node).axis % rank, rank, layout)]
    after = followers(writer, node)
    options = {"fused_activation_function": after.activation}
    writer.emit("ADD", inputs, [writer.make(after.output, layout)], "AddOptions", **options)


@exporter("clip")
def clip(writer: Writer, node: Node) -> None:
    """A relu where it is one; else the smaller and the larger of two numbers."""
    data, layout = node.inputs[0], writer.layout(node.inputs[0])
    source, result = writer.read(data, layout), None
    activation = activation_of(writer, node)
    if activation is not None:
        writer.emit(activation, [source], [writer.make(node.output, layout)])
        return
    op, q = writer.op(node), writer.q(data)
    dtype, offset = writer.tensors[source].dtype, writer.offset(data)
    smallest, largest = writer.bounds(data) if q is not None else (-_BEYOND, _BEYOND)
    bounds = [("MAXIMUM", op.a_min - offset)] if op.a_min - offset > smallest else []
    bounds += [("MINIMUM", op.a_max - offset)] if op.a_max - offset < largest else []
    if not bounds:
        writer.alias(node.output, layout, source)
        return
    for place, (code, bound) in enumerate(bounds):
        constant = writer.constant(f"{node.name}.bound", np.asarray([bound], dtype), q)
        last = place == len(bounds) - 1
        result = writer.make(node.output, layout) if last else writer.scratch(f"{node.output}.low", source, q)
        writer.emit(code, [source, constant], [result], "MaximumMinimumOptions")
        source = result


_BEYOND = float(np.finfo(np.float32).max)


@exporter("qnn.quantize", "qnn.dequantize", "qnn.requantize")
def border(writer: Writer, node: Node) -> None:
    """QUANTIZE, which rescales integers too, and DEQUANTIZE."""
    if node.op == "qnn.requantize":
        check_rounding(node, node.op)
        if any(writer.graph.qparams[v].dtype in ("int32", "int64") for v in (*node.inputs, *node.outputs)):
            raise Inexpressible("integers that are rescaled to or from 32 bits on their own")
    if node.op == "qnn.quantize" and writer.op(node).ties != "away":
        raise Inexpressible("quantizing that rounds half to even")
    layout = writer.layout(node.inputs[0])
    if node.op == "qnn.requantize" and writer.q(node.inputs[0]) == writer.q(node.output):
        writer.alias(node.output, layout, writer.read(node.inputs[0], layout))  # between uint8 and int8
        return
    code, table = (
        ("DEQUANTIZE", "DequantizeOptions") if node.op == "qnn.dequantize" else ("QUANTIZE", "QuantizeOptions")
    )
    writer.write(node, code, table)


@exporter("cast")
def cast(writer: Writer, node: Node) -> None:
    """CAST to another type."""
    writer.write(node, "CAST", "CastOptions")


_REDUCTIONS = REDUCTIONS | {"qnn.mean": "MEAN", "qnn.reduce_sum": "SUM"}


@exporter(*_REDUCTIONS)
def reduction(writer: Writer, node: Node) -> None:
    """MEAN and others along some axes."""
    op, data = writer.op(node), node.inputs[0]
    if node.op in ("mean", "sum", "prod") and data in writer.graph.qparams:
        raise Inexpressible("integers that are summed as they stand")
    rank = writer.rank(data)
    axes = [axis % rank for axis in op.axes]
    left = [axis for axis in range(rank) if axis not in axes]
    layout = writer.layout(data)
    if not op.keepdims and len(left) > 1 and left[-1] >= 2 and 1 in left:
        layout = "plain"  # what is left must be in the graph's order
    there = [TO_NHWC.index(axis) for axis in axes] if layout == "image" else axes
    result: Layout = layout if op.keepdims else "plain"
    inputs = [writer.read(data, layout), writer.integers(sorted(there))]
    writer.emit(
        _REDUCTIONS[node.op], inputs, [writer.make(node.output, result)], "ReducerOptions", keep_dims=op.keepdims
    )


@exporter("nn.global_avg_pool2d", "nn.global_max_pool2d")
def global_pool(writer: Writer, node: Node) -> None:
    """A mean or maximum over each whole image."""
    inputs = [writer.read(node.inputs[0], "image"), writer.integers([1, 2])]
    code = "MEAN" if "avg" in node.op else "REDUCE_MAX"
    if code == "MEAN" and node.output in writer.graph.qparams:
        raise Inexpressible("integers that are averaged as they stand")
    writer.emit(code, inputs, [writer.make(node.output, "image")], "ReducerOptions", keep_dims=True)


_NORMALIZATIONS = {"softmax": ("SOFTMAX", "SoftmaxOptions"), "log_softmax": ("LOG_SOFTMAX", "LogSoftmaxOptions")}
_NORMALIZATIONS["l2_normalize"] = ("L2_NORMALIZATION", "L2NormOptions")


@exporter(*(f"{dialect}.{name}" for dialect in ("nn", "qnn") for name in _NORMALIZATIONS))
def normalization(writer: Writer, node: Node) -> None:
    """SOFTMAX and others, along the file's last axis: another one changes places with it."""
    op, data = writer.op(node), node.inputs[0]
    axis, rank = op.axis % writer.rank(data), writer.rank(data)
    if node.op.startswith("qnn.") and op.semantics != "tflite":
        raise Inexpressible("integers in another arithmetic than TFLite's")
    layout: Layout = "image" if rank == 4 and axis == 1 else "plain"
    x, y = writer.read(data, layout), writer.make(node.output, layout)
    if layout == "image" or axis == rank - 1:
        _along_the_last(writer, node, x, y)
        return
    order = [*range(rank)]
    order[axis], order[-1] = order[-1], order[axis]
    turned_x, turned_y = (
        writer.scratch(
            f"{node.name}.turned",
            tensor,
            writer.tensors[tensor].q,
            shape=[writer.tensors[tensor].shape[place] for place in order],
        )
        for tensor in (x, y)
    )
    writer.emit("TRANSPOSE", [x, writer.integers(order)], [turned_x], "TransposeOptions")
    _along_the_last(writer, node, turned_x, turned_y)
    writer.emit("TRANSPOSE", [turned_y, writer.integers(order)], [y], "TransposeOptions")


def _along_the_last(writer: Writer, node: Node, x: int, y: int) -> None:
    op, (code, table) = writer.op(node), _NORMALIZATIONS[node.op.partition(".")[2]]
    if isinstance(op, L2Normalize) and op.epsilon != LEAST_NORM:
        l2_normalize(writer, node, x, y)
        return
    options = {"beta": float(getattr(op, "beta", 1.0))} if code == "SOFTMAX" else {}
    if not getattr(op, "safe", False):
        writer.emit(code, [x], [y], table, **options)
        return
    # LiteRT makes the least float of minus infinity, and equal parts of a row of nothing else
    unsafe, masked = (writer.scratch(f"{node.output}.part", y, None, dtype) for dtype in (None, "bool"))
    writer.emit(code, [x], [unsafe], table, **options)
    zero, least = (writer.constant(node.name, np.asarray(number, np.float32)) for number in (0, -_BEYOND))
    writer.emit("LESS_EQUAL", [x, least], [masked], "LessEqualOptions")
    writer.emit("SELECT_V2", [masked, zero, unsafe], [y], "SelectV2Options")


@exporter("qnn.prelu")
def integer_prelu(writer: Writer, node: Node) -> None:
    """PRELU as TFLite has it on integers: slopes that broadcast."""
    writer.write(node, "PRELU")


@exporter("nn.prelu")
def prelu(writer: Writer, node: Node) -> None:
    """PRELU with a slope for each channel."""
    op, (data, slopes) = writer.op(node), node.inputs
    axis, rank = op.axis % writer.rank(data), writer.rank(data)
    layout: Layout = "image" if rank == 4 and axis == 1 else "plain"
    if (layout == "plain" and axis != rank - 1) or slopes not in writer.graph.constants:
        raise Inexpressible("slopes that are not constants of the last axis")
    array = writer.graph.constants[slopes].array.reshape((1,) * (rank - 2) + (-1,))
    inputs = [writer.read(data, layout), writer.stored(slopes, array)]
    writer.emit("PRELU", inputs, [writer.make(node.output, layout)])
