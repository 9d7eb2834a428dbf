"""Ops on two tensors, element by element, with NumPy's broadcasting."""

from __future__ import annotations

import numpy as np

from qbench.ir.op import Array, QuantRule, register
from qbench.ir.types import TensorType
from qbench.ops.rules import FloatOp, broadcast, need_number, need_same_dtype, require

__all__ = [
    "Add",
    "Binary",
    "Comparison",
    "Divide",
    "Equal",
    "Greater",
    "GreaterEqual",
    "Less",
    "LessEqual",
    "LogicalAnd",
    "LogicalNot",
    "LogicalOr",
    "Maximum",
    "Minimum",
    "Multiply",
    "Power",
    "Subtract",
    "Where",
]


class Binary(FloatOp):
    """A function of two numbers of one dtype, floats or integers."""

    operands = ("lhs", "rhs")

    def infer(self, lhs: TensorType, rhs: TensorType) -> TensorType:
        need_same_dtype(self, lhs, rhs)
        need_number(self, lhs)
        return TensorType(broadcast(self, lhs.shape, rhs.shape), lhs.dtype)


@register
class Add(Binary):
    """``lhs + rhs``."""

    name = "add"
    rule = QuantRule.ELEMENTWISE

    def compute(self, lhs: Array, rhs: Array) -> Array:
        return lhs + rhs


@register
class Subtract(Binary):
    """``lhs - rhs``."""

    name = "subtract"
    rule = QuantRule.ELEMENTWISE

    def compute(self, lhs: Array, rhs: Array) -> Array:
        return lhs - rhs


@register
class Multiply(Binary):
    """``lhs * rhs``."""

    name = "multiply"
    rule = QuantRule.ELEMENTWISE

    def compute(self, lhs: Array, rhs: Array) -> Array:
        return lhs * rhs


@register
class Divide(Binary):
    """``lhs / rhs``; integers are rounded towards zero, as in C and ONNX, and dividing them by zero gives zero."""

    name = "divide"

    def compute(self, lhs: Array, rhs: Array) -> Array:
        if lhs.dtype.kind not in "iu":
            return lhs / rhs
        quotient = lhs // rhs
        return quotient + ((lhs % rhs != 0) & ((lhs < 0) != (rhs < 0))).astype(lhs.dtype)


@register
class Power(Binary):
    """``lhs`` to the power of ``rhs``."""

    name = "power"

    def compute(self, lhs: Array, rhs: Array) -> Array:
        return np.power(lhs, rhs)


@register
class Maximum(Binary):
    """The larger of the two; NaN where either is."""

    name = "maximum"

    def compute(self, lhs: Array, rhs: Array) -> Array:
        return np.maximum(lhs, rhs)


@register
class Minimum(Binary):
    """The smaller of the two; NaN where either is."""

    name = "minimum"

    def compute(self, lhs: Array, rhs: Array) -> Array:
        return np.minimum(lhs, rhs)


class Comparison(FloatOp):
    """A question about two elements of one dtype; the answers are bool."""

    operands = ("lhs", "rhs")
    float_reason = "unsupported: comparisons have no integer form"

    def infer(self, lhs: TensorType, rhs: TensorType) -> TensorType:
        need_same_dtype(self, lhs, rhs)
        return TensorType(broadcast(self, lhs.shape, rhs.shape), "bool")


@register
class Equal(Comparison):
    """Whether ``lhs == rhs``."""

    name = "equal"

    def compute(self, lhs: Array, rhs: Array) -> Array:
        return lhs == rhs


@register
class Less(Comparison):
    """Whether ``lhs < rhs``."""

    name = "less"

    def compute(self, lhs: Array, rhs: Array) -> Array:
        return lhs < rhs


@register
class LessEqual(Comparison):
    """Whether ``lhs <= rhs``."""

    name = "less_equal"

    def compute(self, lhs: Array, rhs: Array) -> Array:
        return lhs <= rhs


@register
class Greater(Comparison):
    """Whether ``lhs > rhs``."""

    name = "greater"

    def compute(self, lhs: Array, rhs: Array) -> Array:
        return lhs > rhs


@register
class GreaterEqual(Comparison):
    """Whether ``lhs >= rhs``."""

    name = "greater_equal"

    def compute(self, lhs: Array, rhs: Array) -> Array:
        return lhs >= rhs


class _Logical(FloatOp):
    operands = ("lhs", "rhs")
    float_reason = "default for this op: truth values are not quantized"

    def infer(self, *types: TensorType) -> TensorType:
        given = ", ".join(t.dtype for t in types)
        require(all(t.dtype == "bool" for t in types), f"{self.name} wants bool, not {given}")
        return TensorType(broadcast(self, *(t.shape for t in types)), "bool")


@register
class LogicalAnd(_Logical):
    """Whether both are true."""

    name = "logical_and"

    def compute(self, lhs: Array, rhs: Array) -> Array:
        return lhs & rhs


@register
class LogicalOr(_Logical):
    """Whether either is true."""

    name = "logical_or"

    def compute(self, lhs: Array, rhs: Array) -> Array:
        return lhs | rhs


@register
class LogicalNot(_Logical):
    """Whether it is false."""

    name = "logical_not"
    operands = ("data",)

    def compute(self, data: Array) -> Array:
        return ~data


@register
class Where(FloatOp):
    """`lhs` where the condition is true, else `rhs`."""

    name = "where"
    operands = ("condition", "lhs", "rhs")
    float_reason = "unsupported: a choice between tensors of different qparams has no integer form"

    def infer(self, condition: TensorType, lhs: TensorType, rhs: TensorType) -> TensorType:
        require(condition.dtype == "bool", f"{self.name}: the condition must be bool, not {condition.dtype}")
        need_same_dtype(self, lhs, rhs)
        return TensorType(broadcast(self, condition.shape, lhs.shape, rhs.shape), lhs.dtype)

    def compute(self, condition: Array, lhs: Array, rhs: Array) -> Array:
        return np.where(condition, lhs, rhs)
