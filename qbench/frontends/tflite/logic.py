"""Comparisons, truth values, and choices by them."""

from qbench.formats.tflite import COMPARISONS
from qbench.frontends.tflite.arithmetic import aligned
from qbench.frontends.tflite.builder import Builder, Value
from qbench.frontends.tflite.kinds import same_integers
from qbench.frontends.tflite.quantized import quantized
from qbench.frontends.tflite.source import SourceOperator
from qbench.frontends.tflite.table import converter


def _compared(tflite_op: str, options: str, op_name: str) -> None:
    @converter(tflite_op, "lhs rhs", options)
    def convert(builder: Builder, op: SourceOperator, lhs: Value, rhs: Value) -> Value:  # pyright: ignore[reportUnusedFunction] registered
        if lhs.q is not None and rhs.q is not None and not builder.is_real:
            value = quantized(builder, op_name, aligned(builder, lhs, rhs))
        else:
            value = builder.emit(op_name, *aligned(builder, lhs, rhs))
        return builder.emit("logical_not", value) if op.op == "NOT_EQUAL" else value


for _name, (_op, _options) in COMPARISONS.items():
    _compared(_op, _options, _name)
_compared("NOT_EQUAL", "NotEqualOptions", "equal")


@converter("LOGICAL_AND", "lhs rhs", "LogicalAndOptions")
@converter("LOGICAL_OR", "lhs rhs", "LogicalOrOptions")
def logical(builder: Builder, op: SourceOperator, lhs: Value, rhs: Value) -> Value:
    """Of two truth values."""
    return builder.emit(op.op.lower(), *aligned(builder, lhs, rhs))


@converter("LOGICAL_NOT", "x", "LogicalNotOptions")
def logical_not(builder: Builder, op: SourceOperator, x: Value) -> Value:
    """The other truth value."""
    return builder.emit("logical_not", builder.natural(x))


@converter("SELECT", "condition x y", "SelectOptions")
@converter("SELECT_V2", "condition x y", "SelectV2Options")
def select(builder: Builder, op: SourceOperator, condition: Value, x: Value, y: Value) -> Value:
    """x where the condition holds, else y; before version 2 a vector of conditions chooses along the first axis."""
    if op.op == "SELECT" and condition.rank == 1 and x.rank > 1:
        condition = builder.emit("reshape", condition, newshape=(*condition.shape, *(1,) * (x.rank - 1)))
    if x.q is not None or y.q is not None:
        same_integers(builder, x, y)
    return builder.emit("where", *aligned(builder, condition, x, y), q=builder.q)
