"""Arithmetic on two tensors, with NumPy's broadcasting in the file's layout."""

import dataclasses

from qbench.frontends.tflite.builder import Builder, Unsupported, Value
from qbench.frontends.tflite.kinds import activated, is_plain_integer, is_quantized, same_integers
from qbench.frontends.tflite.quantized import quantized
from qbench.frontends.tflite.source import SourceOperator
from qbench.frontends.tflite.table import converter


def aligned(builder: Builder, *operands: Value) -> tuple[Value, ...]:
    """The operands in the layout of the result, those of fewer dimensions made to broadcast there."""
    if max(value.rank for value in operands) != 4:
        return operands
    return tuple(_as_image(builder, value) for value in operands)


def _as_image(builder: Builder, value: Value) -> Value:
    if value.rank == 4:
        return builder.nchw(value)
    if value.constant is not None and value.constant.size == 1:
        return dataclasses.replace(value, nchw=False)
    front = (1,) * (4 - value.rank)
    shape = front + value.shape
    if value.array is not None:
        q = value.q
        if q is not None and q.axis is not None:
            q = dataclasses.replace(q, axis=q.axis + 4 - value.rank)
        return builder.nchw(
            dataclasses.replace(value, shape=shape, q=q, array=value.array.reshape(front + value.array.shape))
        )
    return builder.nchw(builder.emit("reshape", value, q=value.q, newshape=shape))


def _plain(builder: Builder, *operands: Value) -> bool:
    """Whether integers stand for themselves: counts, indices, sizes."""
    return all(map(is_plain_integer, operands)) and builder.q is None


def _arithmetic(tflite_op: str, options: str, op_name: str) -> None:
    @converter(tflite_op, "lhs rhs", f"{options} fused_activation_function")
    def convert(builder: Builder, op: SourceOperator, lhs: Value, rhs: Value) -> Value:  # pyright: ignore[reportUnusedFunction] registered
        operands = aligned(builder, lhs, rhs)
        if _plain(builder, lhs, rhs) or not is_quantized(builder, lhs, rhs):
            return activated(builder, op, builder.emit(op_name, *operands))
        return activated(builder, op, quantized(builder, op_name, operands))


_arithmetic("ADD", "AddOptions pot_scale_int16", "add")
_arithmetic("SUB", "SubOptions pot_scale_int16", "subtract")
_arithmetic("MUL", "MulOptions", "multiply")
_arithmetic("DIV", "DivOptions", "divide")


@converter("MAXIMUM MINIMUM", "lhs rhs", "MaximumMinimumOptions")
def extremum(builder: Builder, op: SourceOperator, lhs: Value, rhs: Value) -> Value:
    """The larger or the smaller; quantized integers can be compared where their scales are equal."""
    operands = aligned(builder, lhs, rhs)
    if not _plain(builder, lhs, rhs) and is_quantized(builder, lhs, rhs):
        same_integers(builder, lhs, rhs)
    return builder.emit(op.op.lower(), *operands, q=builder.q)


@converter("POW", "lhs rhs", "PowOptions")
def power(builder: Builder, op: SourceOperator, lhs: Value, rhs: Value) -> Value:
    """lhs to the power of rhs."""
    operands = aligned(builder, lhs, rhs)
    if is_quantized(builder, lhs, rhs):
        raise Unsupported("quantized powers")
    return builder.emit("power", *operands)


@converter("SQUARED_DIFFERENCE", "lhs rhs", "SquaredDifferenceOptions")
def squared_difference(builder: Builder, op: SourceOperator, lhs: Value, rhs: Value) -> Value:
    """The square of the difference."""
    operands = aligned(builder, lhs, rhs)
    if is_quantized(builder, lhs, rhs):
        return quantized(builder, "squared_difference", operands)
    value = builder.emit("subtract", *operands)
    return builder.emit("multiply", value, value)
