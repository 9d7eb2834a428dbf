"""The conversion table: one small function per ONNX op, with the inputs and attributes that it understands."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qbench.errors import ModelError, nearest, shown
from qbench.frontends.onnx.builder import Builder, Value
from qbench.frontends.onnx.source import SourceNode
from qbench.frontends.operands import fitted

Function = Callable[..., Any]
"""(builder, node, one value per operand) -> the value, or values, that the outputs became."""


@dataclass(frozen=True)
class Converter:
    """How one ONNX op becomes graph nodes."""

    function: Function
    operands: tuple[str, ...]
    attributes: frozenset[str]

    def __call__(self, builder: Builder, node: SourceNode, values: list[Value | None]) -> tuple[Value, ...]:
        """Convert a node; the builder emits, the result is what the node's outputs became."""
        for name in node.attrs:
            if name not in self.attributes:
                known = f"it understands {', '.join(sorted(self.attributes)) or 'none'}"
                raise ModelError(
                    f"node {node}: the importer does not understand the attribute {shown(name)}"
                    f"{nearest(name, self.attributes)} ({known})"
                )
        operands = fitted(self.operands, values, f"node {node}")
        result: Value | tuple[Value, ...] = self.function(builder, node, *operands)
        return result if isinstance(result, tuple) else (result,)


CONVERTERS: dict[tuple[str, str], Converter] = {}
"""Converters by domain and op."""

MOVES = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
"""Ops that move the elements of their first input, so that those of a stored constant may stay integers."""


def converter(ops: str, operands: str, attributes: str = "", domain: str = "") -> Callable[[Function], Function]:
    """Register a function for ONNX ops.

    Parameters
    ----------
    ops
        Names of ONNX ops, separated by blanks.
    operands
        Names of its inputs; ``name?`` may be absent, a final ``*`` stands for one or more.
    attributes
        Names of the attributes that the function reads; any other on a node is an error.
    domain
        The op's domain.
    """

    def register(function: Function) -> Function:
        for op in ops.split():
            CONVERTERS[domain, op] = Converter(function, tuple(operands.split()), frozenset(attributes.split()))
        return function

    return register
