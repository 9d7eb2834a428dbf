"""Mathematical functions of one element."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from qbench.ir.op import Array
from qbench.ir.types import TensorType
from qbench.ops.float.activation import Unary
from qbench.ops.numeric.special import erf
from qbench.ops.rules import NEVER_NEGATIVE, declare, need_number


class _Ufunc(Unary):
    """A unary op that is one function of NumPy, or of `special`; some are one of integers, too."""

    function: ClassVar[Callable[[Array], Array]]
    of_integers: ClassVar[bool] = False

    def infer(self, data: TensorType) -> TensorType:
        if not self.of_integers:
            return super().infer(data)
        need_number(self, data)
        return data

    def compute(self, data: Array) -> Array:
        return type(self).function(data)


Exp = declare(
    _Ufunc, "exp", np.exp, "e to the power of the element; infinity beyond the type's range.", ends=NEVER_NEGATIVE
)
_LOG = declare(_Ufunc, "log", np.log, "Natural logarithm; -infinity at 0, NaN below.")
_SQRT = declare(_Ufunc, "sqrt", np.sqrt, "Square root; NaN below 0.", ends=NEVER_NEGATIVE)
declare(_Ufunc, "tanh", np.tanh, "Hyperbolic tangent.", ends=(-1.0, 1.0))
declare(_Ufunc, "sin", np.sin, "Sine of an angle in radians.", ends=(-1.0, 1.0))
declare(_Ufunc, "cos", np.cos, "Cosine of an angle in radians.", ends=(-1.0, 1.0))
declare(_Ufunc, "tan", np.tan, "Tangent of an angle in radians.")
declare(_Ufunc, "asin", np.arcsin, "The angle in radians that has this sine; NaN outside of -1 to 1.")
declare(
    _Ufunc, "acos", np.arccos, "The angle in radians that has this cosine; NaN outside of -1 to 1.", ends=NEVER_NEGATIVE
)
declare(_Ufunc, "atan", np.arctan, "The angle in radians that has this tangent.")
declare(_Ufunc, "sinh", np.sinh, "Hyperbolic sine.")
declare(_Ufunc, "cosh", np.cosh, "Hyperbolic cosine.", ends=NEVER_NEGATIVE)
declare(_Ufunc, "asinh", np.arcsinh, "Inverse of the hyperbolic sine.")
declare(_Ufunc, "acosh", np.arccosh, "Inverse of the hyperbolic cosine; NaN below 1.", ends=NEVER_NEGATIVE)
declare(_Ufunc, "atanh", np.arctanh, "Inverse of the hyperbolic tangent; infinite at -1 and 1, NaN outside.")
declare(_Ufunc, "erf", erf, "The error function.", ends=(-1.0, 1.0))
declare(_Ufunc, "abs", np.abs, "Absolute value.", ends=NEVER_NEGATIVE, of_integers=True)
declare(_Ufunc, "negative", np.negative, "The element with its sign turned.", of_integers=True)
declare(_Ufunc, "floor", np.floor, "The largest integer that is not above the element.")
declare(_Ufunc, "ceil", np.ceil, "The smallest integer that is not below the element.")
declare(_Ufunc, "round", np.rint, "The nearest integer, halves to even.")
_RECIPROCAL = declare(_Ufunc, "reciprocal", np.reciprocal, "1 divided by the element; infinity at 0.")
_RSQRT = declare(
    _Ufunc,
    "rsqrt",
    lambda x: 1 / np.sqrt(x),
    "1 divided by the square root; infinity at 0, NaN below.",
    ends=NEVER_NEGATIVE,
)
declare(_Ufunc, "sign", np.sign, "-1, 0 or 1.", ends=(-1.0, 1.0), of_integers=True)

STEEP = (_LOG, _SQRT, _RECIPROCAL, _RSQRT)
"""Without a bound on their slope: near 0, one step of 8 bits changes the result by any amount."""
