"""Mathematical functions of one element."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from qbench.ir.op import Array, Op, register
from qbench.ir.types import TensorType
from qbench.ops.float.activation import Unary
from qbench.ops.numeric.special import erf
from qbench.ops.rules import need_number


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


def _declare(name: str, function: Callable[[Array], Array], doc: str, **facts: object) -> type[Op]:
    fields = {"name": name, "function": staticmethod(function), "__doc__": doc, "__module__": __name__, **facts}
    return register(type(name.capitalize(), (_Ufunc,), fields))


_declare("exp", np.exp, "e to the power of the element; infinity beyond the type's range.", never_negative=True)
_LOG = _declare("log", np.log, "Natural logarithm; -infinity at 0, NaN below.")
_SQRT = _declare("sqrt", np.sqrt, "Square root; NaN below 0.", never_negative=True)
_declare("tanh", np.tanh, "Hyperbolic tangent.")
_declare("sin", np.sin, "Sine of an angle in radians.")
_declare("cos", np.cos, "Cosine of an angle in radians.")
_declare("tan", np.tan, "Tangent of an angle in radians.")
_declare("asin", np.arcsin, "The angle in radians that has this sine; NaN outside of -1 to 1.")
_declare("acos", np.arccos, "The angle in radians that has this cosine; NaN outside of -1 to 1.", never_negative=True)
_declare("atan", np.arctan, "The angle in radians that has this tangent.")
_declare("sinh", np.sinh, "Hyperbolic sine.")
_declare("cosh", np.cosh, "Hyperbolic cosine.", never_negative=True)
_declare("asinh", np.arcsinh, "Inverse of the hyperbolic sine.")
_declare("acosh", np.arccosh, "Inverse of the hyperbolic cosine; NaN below 1.", never_negative=True)
_declare("atanh", np.arctanh, "Inverse of the hyperbolic tangent; infinite at -1 and 1, NaN outside.")
_declare("erf", erf, "The error function.")
_declare("abs", np.abs, "Absolute value.", never_negative=True, of_integers=True)
_declare("negative", np.negative, "The element with its sign turned.", of_integers=True)
_declare("floor", np.floor, "The largest integer that is not above the element.")
_declare("ceil", np.ceil, "The smallest integer that is not below the element.")
_declare("round", np.rint, "The nearest integer, halves to even.")
_RECIPROCAL = _declare("reciprocal", np.reciprocal, "1 divided by the element; infinity at 0.")
_RSQRT = _declare(
    "rsqrt", lambda x: 1 / np.sqrt(x), "1 divided by the square root; infinity at 0, NaN below.", never_negative=True
)
_declare("sign", np.sign, "-1, 0 or 1.", of_integers=True)

STEEP = (_LOG, _SQRT, _RECIPROCAL, _RSQRT)
"""Without a bound on their slope: near 0, one step of 8 bits changes the result by any amount."""
