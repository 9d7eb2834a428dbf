"""Normalizations of real numbers that TFLite has no operator for, in parts."""

import dataclasses

import numpy as np

from qbench.exporters.tflite.writer import Writer, exporter
from qbench.ir.graph import Node


@exporter("nn.layer_norm", "nn.rms_norm")
def layer_norm(writer: Writer, node: Node) -> None:
    """``(data - mean) * rsqrt(mean of squares + epsilon) * gamma + beta``; the root mean square takes no mean off."""
    op, (data, *factors) = writer.op(node), node.inputs
    parts = _Parts(writer, node, writer.read(data), op.axis % writer.rank(data))
    value = parts.data
    if node.op == "nn.layer_norm":
        value = parts.whole("centred", "SUB", "SubOptions", [value, parts.reduced("mean", "MEAN", value)])
    squares = parts.whole("squares", "MUL", "MulOptions", [value, value])
    epsilon = writer.constant(f"{node.name}.epsilon", np.asarray(op.epsilon, np.float32))
    variance = parts.reduced("variance", "MEAN", squares)
    raised = writer.scratch(f"{node.name}.raised", variance, None)
    writer.emit("ADD", [variance, epsilon], [raised], "AddOptions")
    factor = writer.scratch(f"{node.name}.factor", variance, None)
    writer.emit("RSQRT", [raised], [factor])
    value = parts.whole("normal", "MUL", "MulOptions", [value, factor])
    *before, last = [("MUL", "MulOptions", factors[0]), *(("ADD", "AddOptions", beta) for beta in factors[1:])]
    for code, table, name in before:
        value = parts.whole("scaled", code, table, [value, writer.read(name)])
    code, table, name = last
    writer.emit(code, [value, writer.read(name)], [writer.make(node.output)], table)


def l2_normalize(writer: Writer, node: Node, x: int, y: int) -> None:
    """Along the last axis of the file's tensors x and y, with another epsilon than that of TFLite's operator."""
    parts = _Parts(writer, node, x, len(writer.tensors[x].shape) - 1)
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
    axis: int

    def whole(self, name: str, code: str, table: str, inputs: list[int]) -> int:
        """Of the data's shape."""
        made = self.writer.scratch(f"{self.node.name}.{name}", self.data, None)
        self.writer.emit(code, inputs, [made], table)
        return made

    def reduced(self, name: str, code: str, value: int) -> int:
        """Over the axis and all after it."""
        shape = self.writer.tensors[self.data].shape
        along = [*range(self.axis, len(shape))]
        made = self.writer.scratch(f"{self.node.name}.{name}", self.data, None)
        tensor = self.writer.tensors[made]
        tensor.shape = (*shape[: self.axis], *[1] * len(along))
        self.writer.emit(code, [value, self.writer.integers(along)], [made], "ReducerOptions", keep_dims=True)
        return made
