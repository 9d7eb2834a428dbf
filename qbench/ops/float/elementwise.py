"""Arithmetic on two tensors, element by element, with NumPy's broadcasting."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from qbench.ir.op import Array, Epilogue, QuantRule, register
from qbench.ir.types import TensorType
from qbench.ops.rules import FloatOp, broadcast, declare, need_number, need_same_dtype


class Binary(FloatOp):
    """A function of two numbers of one dtype, floats or integers."""

    operands = ("lhs", "rhs")
    elementwise = True
    function: ClassVar[Callable[[Array, Array], Array]]
    neutral: ClassVar[float | None] = None
    """The number that leaves lhs as it is."""
    commutes: ClassVar[bool] = False
    """The operands may change places."""

    def infer(self, lhs: TensorType, rhs: TensorType) -> TensorType:
        need_same_dtype(self, lhs, rhs)
        need_number(self, lhs)
        return TensorType(broadcast(self, lhs.shape, rhs.shape), lhs.dtype)

    def compute(self, lhs: Array, rhs: Array) -> Array:
        return type(self).function(lhs, rhs)


@register
class Add(Binary):
    """``lhs + rhs``."""

    name = "add"
    neutral = 0.0
    commutes = True
    rule = QuantRule.ELEMENTWISE
    absorbs = (Epilogue.CLAMP,)
    function = np.add


@register
class Subtract(Binary):
    """``lhs - rhs``."""

    name = "subtract"
    neutral = 0.0
    rule = QuantRule.ELEMENTWISE
    absorbs = (Epilogue.CLAMP,)
    function = np.subtract


@register
class Multiply(Binary):
    """``lhs * rhs``."""

    name = "multiply"
    neutral = 1.0
    commutes = True
    rule = QuantRule.ELEMENTWISE
    absorbs = (Epilogue.BIAS, Epilogue.REQUANTIZE, Epilogue.CLAMP)
    function = np.multiply


declare(
    Binary, "squared_difference", lambda lhs, rhs: np.square(lhs - rhs), "The square of ``lhs - rhs``.", commutes=True
)
Power = declare(Binary, "power", np.power, "``lhs`` to the power of ``rhs``.", neutral=1.0)
Maximum = declare(Binary, "maximum", np.maximum, "The larger of the two; NaN where either is.", commutes=True)
Minimum = declare(Binary, "minimum", np.minimum, "The smaller of the two; NaN where either is.", commutes=True)


@register
class Divide(Binary):
    """``lhs / rhs``; integers are rounded towards zero, as in C and ONNX, and dividing them by zero gives zero."""

    name = "divide"
    neutral = 1.0

    def compute(self, lhs: Array, rhs: Array) -> Array:
        if lhs.dtype.kind not in "iu":
            return lhs / rhs
        quotient = lhs // rhs  # rounded down; one too low where the signs differ and something remains
        return quotient + ((lhs % rhs != 0) & ((lhs < 0) != (rhs < 0))).astype(lhs.dtype)
