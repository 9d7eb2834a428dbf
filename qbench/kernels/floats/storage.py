"""How floats lie in memory: float32 as they are, float16 as 16 bits, widened when read and rounded when stored."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from llvmlite import ir

from qbench.kernels.jit import intrinsic, register_jitable, types
from qbench.kernels.levels import Level, is_python

FloatType = Literal["float32", "float16"]

_SIGN = np.uint32(0x80000000)
_INFINITY = np.uint32(0x7F800000)
_HALF_END = np.uint32(143 << 23)  # 2^16, beyond all that rounds to a finite float16
_HALF_NORMAL = np.uint32(113 << 23)  # 2^-14, the least normal float16
_HALF = np.uint32(126 << 23)  # 1/2: a sum with it has the last place of a subnormal float16
_WIDEN = np.float32(2.0**112)


@dataclass(frozen=True)
class Storage:
    """A way to keep floats.

    Parameters
    ----------
    name
        Part of the names of kernels.
    dtype
        Of the memory, as kernels view it.
    size
        Bytes of an element.
    load
        ``load(array, index) -> float32``.
    store
        ``store(array, index, float32)``, rounding half to even.
    """

    name: str
    dtype: Any
    size: int
    load: Callable[[Any, int], Any]
    store: Callable[[Any, int, Any], None]


def storage(dtype: FloatType, level: Level) -> Storage:
    """How a level keeps floats of a type."""
    if dtype == "float32":
        return _plain()
    return _bits() if level is Level.PORTABLE or is_python() else _half()


@cache
def _plain() -> Storage:
    @register_jitable
    def load(array, index):
        return array[index]

    @register_jitable
    def store(array, index, value):
        array[index] = value

    return Storage("float32", np.float32, 4, load, store)


@cache
def _half() -> Storage:
    """By the processor's own conversion."""

    @register_jitable
    def load(array, index):
        return _from_half(array[index])

    @register_jitable
    def store(array, index, value):
        array[index] = _to_half(value)

    return Storage("float16", np.uint16, 2, load, store)


@cache
def _bits() -> Storage:
    """By integer arithmetic, anywhere."""

    @register_jitable
    def load(array, index):
        return _widened(array[index])

    @register_jitable
    def store(array, index, value):
        array[index] = _rounded(value)

    return Storage("float16bits", np.uint16, 2, load, store)


@intrinsic
def _from_half(context, bits):
    def generate(context, builder, signature, arguments):
        return builder.fpext(builder.bitcast(arguments[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), generate


@intrinsic
def _to_half(context, value):
    def generate(context, builder, signature, arguments):
        return builder.bitcast(builder.fptrunc(arguments[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(types.float32), generate


@register_jitable
def _float(bits):
    return np.uint32(bits).view(np.float32)


@register_jitable
def _bits_of(value):
    return np.float32(value).view(np.uint32)


@register_jitable
def _widened(half):
    """float16 to float32: the exponent's bias by a product, which makes subnormals normal as well."""
    half = np.uint32(half)
    magnitude = half & np.uint32(0x7FFF)
    bits = _bits_of(_float(magnitude << np.uint32(13)) * _WIDEN)
    if magnitude >= np.uint32(0x7C00):
        bits |= _INFINITY
    return _float(bits | (half & np.uint32(0x8000)) << np.uint32(16))


@register_jitable
def _rounded(value):
    """float32 to float16, half to even: by the adder's own rounding where the result is subnormal."""
    bits = _bits_of(value)
    sign = bits & _SIGN
    bits ^= sign
    if bits >= _HALF_END:
        half = np.uint32(0x7E00) if bits > _INFINITY else np.uint32(0x7C00)
    elif bits < _HALF_NORMAL:
        half = np.uint32(_bits_of(_float(bits) + np.float32(0.5)) - _HALF)
    else:
        odd = np.uint32((bits >> np.uint32(13)) & np.uint32(1))
        half = np.uint32(bits - np.uint32(112 << 23) + np.uint32(0xFFF) + odd) >> np.uint32(13)
    return np.uint16(half | sign >> np.uint32(16))
