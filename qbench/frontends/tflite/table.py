"""The conversion table: one small function per TFLite operator, with the inputs and options that it understands."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qbench.errors import ModelError, shown
from qbench.frontends.operands import fitted
from qbench.frontends.tflite.builder import Builder, Value
from qbench.frontends.tflite.source import SourceOperator

Function = Callable[..., Any]
"""(builder, operator, one value per operand) -> the value, or values, that the outputs became."""


@dataclass(frozen=True)
class Converter:
    """How one TFLite operator becomes graph nodes."""

    function: Function
    operands: tuple[str, ...]
    options_table: str
    options: frozenset[str]

    def __call__(self, builder: Builder, op: SourceOperator, values: list[Value | None]) -> list[Value]:
        """Convert an operator; the builder emits, the result is what the operator's outputs became."""
        if op.options_table not in ("", self.options_table):
            raise ModelError(f"operator {op} has the options of another one, {op.options_table}")
        for name, value in op.options.items():
            if name not in self.options:
                known = f"it understands {', '.join(sorted(self.options)) or 'none'}"
                raise ModelError(f"operator {op}: the importer does not understand {shown(name)}={value} ({known})")
        operands = fitted(self.operands, values, f"operator {op}")
        result: Value | tuple[Value, ...] = self.function(builder, op, *operands)
        return list(result) if isinstance(result, tuple) else [result]


CONVERTERS: dict[str, Converter] = {}
"""Converters by operator."""


def converter(ops: str, operands: str, options: str = "") -> Callable[[Function], Function]:
    """Register a function for TFLite operators.

    Parameters
    ----------
    ops
        Names of builtin operators, separated by blanks.
    operands
        Names of its inputs; ``name?`` may be absent, a final ``*`` stands for one or more.
    options
        Name of the options table, then the fields that the function reads; any other that is set is an error.
    """

    def register(function: Function) -> Function:
        table, *fields = options.split() or [""]
        for op in ops.split():
            CONVERTERS[op] = Converter(function, tuple(operands.split()), table, frozenset(fields))
        return function

    return register
