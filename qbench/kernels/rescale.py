"""How vectors of accumulators become codes: the constants that each form reads, beside the code that it emits."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from qbench.kernels.isa.emit import F32

Numbers = NDArray[Any]


class Arithmetic(Protocol):
    """What rescaling asks of vectors of int32; an `Isa` has it."""

    def multiply_round(self, b: ir.IRBuilder, accumulators: Any, multipliers: Any, /) -> Any:
        """See `Isa.multiply_round`."""
        ...

    def multiply_down(self, b: ir.IRBuilder, accumulators: Any, high: Any, low: Any, /) -> Any:
        """See `Isa.multiply_down`."""
        ...

    def high_product(self, b: ir.IRBuilder, x: Any, y: Any, /) -> Any:
        """See `Isa.high_product`."""
        ...


class Rescale(ABC):
    """One form of rescaling; when which is right is said at `epilogue.choose_epilogue`."""

    constants: ClassVar[int]
    """Numbers of 32 bits per channel."""

    adds_zero_point: ClassVar[bool] = False
    """Whether the result has the zero point in it."""

    halves: ClassVar[bool] = False
    """Whether the result is twice the real value, rounded down: what is left to do is to round half up."""

    @staticmethod
    @abstractmethod
    def pack(mantissa: Numbers, shift: Numbers, multiplier: Numbers, zero_point: int) -> Sequence[Numbers]:
        """The constants of all channels."""

    @staticmethod
    @abstractmethod
    def emit(b: ir.IRBuilder, isa: Arithmetic, sums: Any, constants: Sequence[Any]) -> Any:
        """A vector of rescaled int32, from one of sums and what `pack` gave, as int32."""


class Float(Rescale):
    """``fp32_rne``."""

    constants = 1

    @staticmethod
    def pack(mantissa: Numbers, shift: Numbers, multiplier: Numbers, zero_point: int) -> Sequence[Numbers]:
        """See `Rescale.pack`."""
        return [multiplier.astype(np.float32)]

    @staticmethod
    def emit(b: ir.IRBuilder, isa: Arithmetic, sums: Any, constants: Sequence[Any]) -> Any:
        """See `Rescale.emit`."""
        return isa.multiply_round(b, sums, b.bitcast(constants[0], ir.VectorType(F32, sums.type.count)))


class Fixed(Rescale):
    """Half up, where a product is shifted right by t of 33 to 54.

    ``floor((p + 2^(t-1)) / 2^t)`` is ``floor((floor(p / 2^32) + 2^(t-33)) / 2^(t-32))``: 32 bits hold all but p.
    """

    constants = 3
    adds_zero_point = True

    @staticmethod
    def pack(mantissa: Numbers, shift: Numbers, multiplier: Numbers, zero_point: int) -> Sequence[Numbers]:
        """See `Rescale.pack`."""
        right = -1 - shift.astype(np.int64)
        return [mantissa, _half(right) + (zero_point << right), right]

    @staticmethod
    def emit(b: ir.IRBuilder, isa: Arithmetic, sums: Any, constants: Sequence[Any]) -> Any:
        """See `Rescale.emit`."""
        mantissa, added, right = constants
        return b.ashr(b.add(isa.high_product(b, sums, mantissa), added), right)


class FixedLeft(Rescale):
    """The same for any t, after a left shift that leaves t at least 33; by 63 and more every product gives zero."""

    constants = 4

    @staticmethod
    def pack(mantissa: Numbers, shift: Numbers, multiplier: Numbers, zero_point: int) -> Sequence[Numbers]:
        """See `Rescale.pack`."""
        left = np.maximum(shift.astype(np.int64) + 2, 0)
        right = np.minimum(left - 1 - shift, 31)
        return [np.minimum(left, 31), mantissa, _half(right), right]

    @staticmethod
    def emit(b: ir.IRBuilder, isa: Arithmetic, sums: Any, constants: Sequence[Any]) -> Any:
        """See `Rescale.emit`."""
        left, *fixed = constants
        return Fixed.emit(b, isa, b.shl(sums, left), fixed)


class FixedDouble(Rescale):
    """``tflite_double``: for x less than 0 other than for the rest, half of the last bit of the first rounding is lost.

    With e bits left to drop after the first product, and g = ``floor(x M / 2^30)``, both roundings together are
    ``floor((g + 2^e + 1) / 2^(e + 1))``, two less being added where x is negative; with e = 0, ``floor((g + 1) / 2)``.
    """

    constants = 5
    adds_zero_point = True

    @staticmethod
    def pack(mantissa: Numbers, shift: Numbers, multiplier: Numbers, zero_point: int) -> Sequence[Numbers]:
        """See `Rescale.pack`."""
        wide = shift.astype(np.int64)
        right = 1 + np.maximum(-wide, 0)
        twice = right > 1
        added = np.where(twice, _half(right) + 1, 1) + (zero_point << right)
        return [2 + np.maximum(wide, 0), mantissa, added, np.where(twice, 2, 0), right]

    @staticmethod
    def emit(b: ir.IRBuilder, isa: Arithmetic, sums: Any, constants: Sequence[Any]) -> Any:
        """See `Rescale.emit`."""
        left, mantissa, added, two, right = constants
        product = isa.high_product(b, b.shl(sums, left), mantissa)
        less = b.and_(b.ashr(sums, ir.Constant(sums.type, [31] * sums.type.count)), two)
        return b.ashr(b.add(product, b.sub(added, less)), right)


class FixedFloat(Rescale):
    """Half up for accumulators x up to 2^24, in float32 that rounds down, with no error.

    Take ``2 x M / 2^t`` in units of ``2 / 2^t``, with ``M = 128 H + L``. The float z nearest below ``x L``, a product
    of 24 by 7 bits, and the float y nearest below ``128 x H + z``, which is rounded once, are compared with integers.
    In these units an integer k is a multiple of 128, as t is 8 or more, and so is ``k - 128 x H``. Such a multiple is
    a float if it is small enough to matter, so z reaches it just where ``x L`` does. Then y reaches k just where
    ``x M`` does: ``floor(y)`` is the floor of the exact ``2 x M / 2^t``, and half of that plus one is ``x M / 2^t``
    rounded half up.
    """

    constants = 2
    halves = True

    @staticmethod
    def pack(mantissa: Numbers, shift: Numbers, multiplier: Numbers, zero_point: int) -> Sequence[Numbers]:
        """See `Rescale.pack`."""
        return [np.ldexp(part.astype(np.float32), shift - 30) for part in (mantissa & -128, mantissa & 127)]

    @staticmethod
    def emit(b: ir.IRBuilder, isa: Arithmetic, sums: Any, constants: Sequence[Any]) -> Any:
        """See `Rescale.emit`."""
        floats = ir.VectorType(F32, sums.type.count)
        return isa.multiply_down(b, sums, *(b.bitcast(constant, floats) for constant in constants))


def _half(right: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.int64(1) << (right - 1)


RESCALES: dict[str, type[Rescale]] = {
    "float": Float,
    "fixed": Fixed,
    "fixed_left": FixedLeft,
    "fixed_float": FixedFloat,
    "fixed_double": FixedDouble,
}
"""By the name of the epilogue."""
