"""Questions about elements, whose answers are bool, and what is done with them."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from qbench.ir.op import Array, register
from qbench.ir.types import TensorType
from qbench.ops.rules import FloatOp, broadcast, declare, need_float, need_same_dtype, require


class Comparison(FloatOp):
    """A question about two elements."""

    operands = ("lhs", "rhs")
    elementwise = True
    float_reason = "unsupported: comparisons have no integer form"
    function: ClassVar[Callable[[Array, Array], Array]]

    def infer(self, lhs: TensorType, rhs: TensorType) -> TensorType:
        need_same_dtype(self, lhs, rhs)
        return TensorType(broadcast(self, lhs.shape, rhs.shape), "bool")

    def compute(self, lhs: Array, rhs: Array) -> Array:
        return type(self).function(lhs, rhs)


class Logical(FloatOp):
    """A function of truth values."""

    operands = ("lhs", "rhs")
    elementwise = True
    float_reason = "default for this op: truth values are not quantized"
    function: ClassVar[Callable[..., Array]]

    def infer(self, *types: TensorType) -> TensorType:
        given = ", ".join(t.dtype for t in types)
        require(all(t.dtype == "bool" for t in types), f"{self.name} wants bool, not {given}")
        return TensorType(broadcast(self, *(t.shape for t in types)), "bool")

    def compute(self, *arrays: Array) -> Array:
        return type(self).function(*arrays)


COMPARISONS = {
    "equal": (np.equal, "=="),
    "less": (np.less, "<"),
    "less_equal": (np.less_equal, "<="),
    "greater": (np.greater, ">"),
    "greater_equal": (np.greater_equal, ">="),
}
"""By the name of the op: NumPy's function, and its sign."""
for _name, (_function, _sign) in COMPARISONS.items():
    declare(Comparison, _name, _function, f"Whether ``lhs {_sign} rhs``.")
declare(Logical, "logical_and", np.logical_and, "Whether both are true.")
declare(Logical, "logical_or", np.logical_or, "Whether either is true.")
declare(Logical, "logical_not", np.logical_not, "Whether it is false.", operands=("data",))


@register
class IsNan(FloatOp):
    """Whether the element is not a number."""

    name = "is_nan"
    elementwise = True
    float_reason = "default for this op: truth values are not quantized"

    def infer(self, data: TensorType) -> TensorType:
        need_float(self, data)
        return data.with_dtype("bool")

    def compute(self, data: Array) -> Array:
        return np.isnan(data)


@register
class Where(FloatOp):
    """`lhs` where the condition is true, else `rhs`."""

    name = "where"
    operands = ("condition", "lhs", "rhs")
    elementwise = True
    float_reason = "unsupported: a choice between tensors of different qparams has no integer form"

    def infer(self, condition: TensorType, lhs: TensorType, rhs: TensorType) -> TensorType:
        require(condition.dtype == "bool", f"{self.name}: the condition must be bool, not {condition.dtype}")
        need_same_dtype(self, lhs, rhs)
        return TensorType(broadcast(self, condition.shape, lhs.shape, rhs.shape), lhs.dtype)

    def compute(self, condition: Array, lhs: Array, rhs: Array) -> Array:
        return np.where(condition, lhs, rhs)
