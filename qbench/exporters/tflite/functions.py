"""Functions of real numbers that TFLite has no operator for, in parts."""

import numpy as np

from qbench.exporters.tflite.writer import Inexpressible, Layout, Writer, exporter
from qbench.ir.graph import Node


class _Parts:
    """The operators that make up a function of one value, all of its shape."""

    def __init__(self, writer: Writer, node: Node) -> None:
        if node.inputs[0] in writer.graph.qparams:
            raise Inexpressible("integers that are taken as they stand")
        self._writer, self._node = writer, node
        self._layout: Layout = writer.layout(node.inputs[0])
        self.data = writer.read(node.inputs[0], self._layout)

    def __call__(self, code: str, *inputs: int, table: str = "", last: bool = False) -> int:
        """What an operator makes; the last one makes the node's value."""
        writer, node = self._writer, self._node
        made = writer.make(node.output, self._layout) if last else writer.scratch(f"{node.name}.part", self.data, None)
        writer.emit(code, inputs, [made], table)
        return made

    def number(self, value: float) -> int:
        """A constant."""
        dtype = self._writer.tensors[self.data].dtype
        return self._writer.constant(f"{self._node.name}.number", np.asarray(value, dtype))


@exporter("nn.silu")
def silu(writer: Writer, node: Node) -> None:
    """``x * logistic(x)``."""
    part = _Parts(writer, node)
    part("MUL", part.data, part("LOGISTIC", part.data), table="MulOptions", last=True)


@exporter("nn.hard_sigmoid")
def hard_sigmoid(writer: Writer, node: Node) -> None:
    """``min(max(alpha * x + beta, 0), 1)``."""
    op, part = writer.op(node), _Parts(writer, node)
    line = part("MUL", part.data, part.number(op.alpha), table="MulOptions")
    line = part("ADD", line, part.number(op.beta), table="AddOptions")
    above = part("MAXIMUM", line, part.number(0), table="MaximumMinimumOptions")
    part("MINIMUM", above, part.number(1), table="MaximumMinimumOptions", last=True)


@exporter("nn.softplus")
def softplus(writer: Writer, node: Node) -> None:
    """``max(x, 0) + log(1 + exp(-abs(x)))``, which stays finite."""
    part = _Parts(writer, node)
    small = part("EXP", part("NEG", part("ABS", part.data, table="AbsOptions"), table="NegOptions"), table="ExpOptions")
    rest = part("LOG", part("ADD", small, part.number(1), table="AddOptions"))
    part("ADD", part("RELU", part.data), rest, table="AddOptions", last=True)


@exporter("reciprocal")
def reciprocal(writer: Writer, node: Node) -> None:
    """``1 / x``."""
    part = _Parts(writer, node)
    part("DIV", part.number(1), part.data, table="DivOptions", last=True)


@exporter("nn.gelu")
def gelu(writer: Writer, node: Node) -> None:
    """GELU, by erf or by tanh."""
    op, data = writer.op(node), node.inputs[0]
    if data in writer.graph.qparams:
        raise Inexpressible("integers that are taken as they stand")
    writer.write(node, "GELU", "GeluOptions", approximate=op.approximate == "tanh")
