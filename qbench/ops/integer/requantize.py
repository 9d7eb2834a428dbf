"""From accumulators to narrow integers: requantize in every rounding mode, and addition of rescaled tensors."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from qbench.errors import GraphError
from qbench.ir.dtypes import DType, integer_range, numpy_dtype
from qbench.ir.op import Array, Epilogue, register
from qbench.ir.types import Dim, TensorType
from qbench.ops.float.elementwise import Add
from qbench.ops.rules import InternalOp, fixed
from qbench.quant.rescaling import rescale, rescale_float32, rescale_float64, rounding_shift
from qbench.quant.rounding import Rounding


def saturate(values: Array, dtype: DType) -> Array:
    """Clip to the range of an integer type, then convert to it."""
    low, high = integer_range(dtype)
    return np.clip(values, low, high).astype(numpy_dtype(dtype))


@dataclass(frozen=True, kw_only=True)
class _Rescale(InternalOp):
    absorbs = (Epilogue.CLAMP,)
    elementwise = True
    dtype: DType
    zero_point: int = 0
    """Zero point of the result."""


@dataclass(frozen=True, kw_only=True)
class Requantize(_Rescale):
    """An integer at one scale as an integer at another."""

    epilogue = Epilogue.REQUANTIZE
    absorbs = (Epilogue.BIAS, Epilogue.REQUANTIZE, Epilogue.CLAMP)
    data_zero_point: int = 0
    rounding: Rounding

    def infer(self, data: TensorType, *parameters: TensorType) -> TensorType:
        for parameter in parameters:
            if parameter.rank > data.rank:
                raise GraphError(f"multipliers of shape {parameter.shape} do not broadcast to {data.shape}")
        return data.with_dtype(self.dtype)

    def _centred(self, data: Array) -> Array:
        return data.astype(np.int64) - self.data_zero_point


@register
class IntegerRequantize(Requantize):
    """``round((data - data_zero_point) * mantissa * 2^(shift - 31)) + zero_point``, saturated.

    `mantissa` and `shift` broadcast against `data`; `rounding` is one of the fixed-point modes.
    """

    name = "integer.requantize"
    operands = ("data", "mantissa", "shift")

    def compute(self, data: Array, mantissa: Array, shift: Array) -> Array:
        scaled = rescale(self._centred(data), mantissa, shift, self.rounding)
        return saturate(scaled + self.zero_point, self.dtype)


@register
class IntegerRequantizeFloat32(Requantize):
    """Rounding mode ``fp32_rne``: the accumulator as float32, times a float32 multiplier, ties to even.

    Of a mean over sizes that are open, `multiplier` is the scale of the sums, still to be divided by `step` and by how
    many integers each has.
    """

    name = "integer.requantize_float32"
    operands = ("data", "multiplier")
    rounding: Rounding = "fp32_rne"
    zero_point_first: bool = False
    """The zero point is added in float32, before rounding."""
    step: float = 1.0
    """The scale of the result, where the multiplier is still to be divided by it."""
    divisor: Dim = 1
    """How many integers each sum has, likewise."""

    def factor(self, multiplier: Array) -> Array:
        """What accumulators are multiplied by: float32, of the shape of `multiplier`."""
        steps = np.float32(self.step) * np.float32(fixed(self, "the divisor", self.divisor))
        return multiplier / steps if steps != 1 else multiplier

    def compute(self, data: Array, multiplier: Array) -> Array:
        factor = self.factor(multiplier)
        if self.zero_point_first:
            real = self._centred(data).astype(np.float32) * factor + np.float32(self.zero_point)
            return saturate(np.rint(real), self.dtype)
        return saturate(rescale_float32(self._centred(data), factor) + self.zero_point, self.dtype)


@register
class IntegerRequantizeFloat64(Requantize):
    """Rounding mode ``fp64_away``: the accumulator times a float64 multiplier, ties away from zero.

    `mantissa` int64 and `shift` int32 hold the multiplier's 53 bits: it is ``mantissa * 2^(shift - 53)``.
    """

    name = "integer.requantize_float64"
    operands = ("data", "mantissa", "shift")
    rounding: Rounding = "fp64_away"

    def compute(self, data: Array, mantissa: Array, shift: Array) -> Array:
        multiplier = np.ldexp(mantissa.astype(np.float64), shift - 53)
        return saturate(rescale_float64(self._centred(data), multiplier) + self.zero_point, self.dtype)


@register
class IntegerRoundingShift(Requantize):
    """Rounding right shift (left where negative): requantize where every multiplier is a power of two."""

    name = "integer.rounding_shift"
    operands = ("data", "shift")

    def compute(self, data: Array, shift: Array) -> Array:
        return saturate(rounding_shift(self._centred(data), shift, self.rounding) + self.zero_point, self.dtype)


@dataclass(frozen=True, kw_only=True)
class IntegerSumOfTwo(InternalOp):
    """The sum of two tensors of integers, at the scale of its own."""

    form_of = "add"
    operands = ("lhs", "rhs")
    absorbs = (Epilogue.CLAMP,)
    elementwise = True
    dtype: DType

    def infer(self, lhs: TensorType, rhs: TensorType) -> TensorType:
        return Add().infer(lhs.with_dtype("float32"), rhs.with_dtype("float32")).with_dtype(self.dtype)


@dataclass(frozen=True, kw_only=True)
class _Sum(IntegerSumOfTwo, _Rescale):
    zero_points: tuple[int, int]
    """Zero points of lhs and rhs."""

    def _centred(self, lhs: Array, rhs: Array) -> tuple[Array, Array]:
        return lhs.astype(np.int64) - self.zero_points[0], rhs.astype(np.int64) - self.zero_points[1]


@register
class IntegerAdd(_Sum):
    """The sum of two tensors, each rescaled to the scale of the result; a negative mantissa subtracts.

    With ``per_operand`` each operand is rounded by itself before the addition, as QNN does; else the exact
    64-bit sum ``(lhs - z0) * mantissa[0] + (rhs - z1) * mantissa[1]`` is rounded once.
    """

    name = "integer.add"
    mantissa: tuple[int, int]
    shift: tuple[int, int]
    rounding: Rounding
    per_operand: bool = False

    def compute(self, lhs: Array, rhs: Array) -> Array:
        a, b = self._centred(lhs, rhs)
        if self.per_operand:
            total = np.zeros((), np.int64)
            for x, mantissa, shift in zip((a, b), self.mantissa, self.shift, strict=True):
                rescaled = rescale(x, np.asarray(abs(mantissa)), np.asarray(shift), self.rounding)
                total = np.add(total, rescaled if mantissa >= 0 else -rescaled)
        else:
            exact = a * self.mantissa[0] + b * self.mantissa[1]
            ties: Literal["pow2_half_even", "pow2_half_up"] = (
                "pow2_half_even" if self.rounding == "pow2_half_even" else "pow2_half_up"
            )
            total = rounding_shift(exact, np.asarray(31 - self.shift[0]), ties)
        return saturate(total + self.zero_point, self.dtype)


@register
class IntegerAddFloat32(_Sum):
    """Rounding mode ``fp32_rne`` of addition: float32 products, summed, rounded once to even."""

    name = "integer.add_float32"
    multipliers: tuple[float, float]

    def compute(self, lhs: Array, rhs: Array) -> Array:
        a, b = self._centred(lhs, rhs)
        scaled = a.astype(np.float32) * np.float32(self.multipliers[0])
        total = scaled + b.astype(np.float32) * np.float32(self.multipliers[1])
        return saturate(np.rint(total).astype(np.int64) + self.zero_point, self.dtype)
