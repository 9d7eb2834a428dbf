"""Normalizations of real numbers that TFLite has no operator for, in parts; and the one that it has under a name."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from qbench.exporters.tflite.fused import followers
from qbench.exporters.tflite.writer import Inexpressible, Layout, Writer, exporter
from qbench.ir.graph import Node


@exporter("nn.layer_norm", "nn.rms_norm")
def layer_norm(writer: Writer, node: Node) -> None:
    """Over an axis and all after it; the root mean square takes no mean off."""
    data, *factors = node.inputs
    rank = writer.rank(data)
    parts = _Parts(writer, node, writer.read(data), range(writer.op(node).axis % rank, rank))
    steps = [(code, writer.read(name)) for code, name in zip(("MUL", "ADD"), factors, strict=False)]
    _normalize(parts, steps, "plain", centred=node.op == "nn.layer_norm")


@exporter("nn.instance_norm")
def instance_norm(writer: Writer, node: Node) -> None:
    """Over each channel of each sample; ones and zeros, as group normalization has here, are left out."""
    data, *factors = node.inputs
    rank = writer.rank(data)
    layout: Layout = "image" if rank == 4 else "plain"
    parts = _Parts(writer, node, writer.read(data, layout), (1, 2) if layout == "image" else range(2, rank))
    steps = [
        (code, writer.along(name, 1, rank, layout))
        for code, name, neutral in zip(("MUL", "ADD"), factors, (1, 0), strict=True)
        if name not in writer.graph.constants or (writer.graph.constants[name].array != neutral).any()
    ]
    _normalize(parts, steps, layout)


def _normalize(parts: "_Parts", steps: Sequence[tuple[str, int]], layout: Layout, centred: bool = True) -> None:
    """``(data - mean) * rsqrt(mean of squares + epsilon)``, then the steps."""
    writer, node, value = parts.writer, parts.node, parts.data
    if centred:
        value = parts.whole("centred", "SUB", "SubOptions", [value, parts.reduced("mean", "MEAN", value)])
    squares = parts.whole("squares", "MUL", "MulOptions", [value, value])
    epsilon = writer.constant(f"{node.name}.epsilon", np.asarray(writer.op(node).epsilon, np.float32))
    variance = parts.reduced("variance", "MEAN", squares)
    raised, root = (writer.scratch(f"{node.name}.{name}", variance, None) for name in ("raised", "root"))
    writer.emit("ADD", [variance, epsilon], [raised], "AddOptions")
    writer.emit("RSQRT", [raised], [root])
    parts.in_turn(value, [("MUL", root), *steps], layout)


@exporter("nn.batch_norm")
def batch_norm(writer: Writer, node: Node) -> None:
    """A product and a sum; of a model that was not prepared, since a layer takes them in there."""
    op, (data, *names) = writer.op(node), node.inputs
    if any(name not in writer.graph.constants for name in names):
        raise Inexpressible("a batch norm whose parameters are not constant")
    gamma, beta, mean, variance = (writer.graph.constants[name].array for name in names)
    scale = gamma / np.sqrt(variance + op.epsilon)
    layout, rank = writer.layout(data), writer.rank(data)
    vectors = zip(("MUL", "ADD"), names, (scale, beta - mean * scale), strict=False)
    steps = [(code, writer.vector(name, array, op.axis % rank, rank, layout)) for code, name, array in vectors]
    source = writer.read(data, layout)
    _Parts(writer, node, source).in_turn(source, steps, layout)


@exporter("nn.lrn")
def local_response_norm(writer: Writer, node: Node) -> None:
    """LOCAL_RESPONSE_NORMALIZATION, whose alpha is a factor of the sum of squares and not of their mean."""
    op, data = writer.op(node), node.inputs[0]
    before, after = op.neighbours
    if before != after or writer.rank(data) != 4:
        raise Inexpressible("a local response norm of more neighbours on one side, or of other data than images")
    options = {"radius": before, "bias": op.bias, "alpha": op.alpha / op.size, "beta": op.beta}
    table = "LocalResponseNormalizationOptions"
    writer.write(node, "LOCAL_RESPONSE_NORMALIZATION", table, layout="image", **options)


def l2_normalize(writer: Writer, node: Node, x: int, y: int) -> None:
    """Along the last axis of the file's tensors x and y, with another epsilon than that of TFLite's operator."""
    parts = _Parts(writer, node, x, [len(writer.tensors[x].shape) - 1])
    squares = parts.whole("squares", "MUL", "MulOptions", [x, x])
    total = parts.reduced("total", "SUM", squares)
    norm, least = (writer.scratch(f"{node.name}.{name}", total, None) for name in ("norm", "least"))
    writer.emit("SQRT", [total], [norm])
    epsilon = writer.constant(f"{node.name}.epsilon", np.asarray(writer.op(node).epsilon, np.float32))
    writer.emit("MAXIMUM", [norm, epsilon], [least], "MaximumMinimumOptions")
    writer.emit("DIV", [x, least], [y], "DivOptions")


@dataclasses.dataclass(frozen=True)
class _Parts:
    """What a normalization makes on the way."""

    writer: Writer
    node: Node
    data: int
    axes: Sequence[int] = ()
    """Of the file's tensor."""

    def whole(self, name: str, code: str, table: str, inputs: list[int]) -> int:
        """Of the data's shape."""
        made = self.writer.scratch(f"{self.node.name}.{name}", self.data, None)
        self.writer.emit(code, inputs, [made], table)
        return made

    def reduced(self, name: str, code: str, value: int) -> int:
        """Over the axes, which stay with one element."""
        shape = self.writer.tensors[self.data].shape
        shape = [1 if axis in self.axes else size for axis, size in enumerate(shape)]
        made = self.writer.scratch(f"{self.node.name}.{name}", self.data, None, shape=shape)
        inputs = [value, self.writer.integers(self.axes)]
        self.writer.emit(code, inputs, [made], "ReducerOptions", keep_dims=True)
        return made

    def in_turn(self, value: int, steps: Sequence[tuple[str, int]], layout: Layout) -> None:
        """Products and sums, the last of which makes the node's value and takes in the activation that follows."""
        after = followers(self.writer, self.node)
        for code, operand in steps[:-1]:
            value = self.whole("scaled", code, _TABLES[code], [value, operand])
        code, operand = steps[-1]
        result, fused = self.writer.make(after.output, layout), {"fused_activation_function": after.activation}
        self.writer.emit(code, [value, operand], [result], _TABLES[code], **fused)


_TABLES = {"ADD": "AddOptions", "MUL": "MulOptions"}
