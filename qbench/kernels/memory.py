"""Addresses as arrays: the one place where a kernel turns a number into memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, types
from numba.extending import intrinsic, overload, register_jitable
from numpy.typing import NDArray

__all__ = ["address_of", "pointer", "reference", "view"]

_BASE_SHIFT = 48
_OFFSET = (1 << _BASE_SHIFT) - 1


def reference(base: int, offset: int = 0) -> int:
    """A place that is known only when a run has its memory: bytes from the start of one of the run's buffers.

    A plain address is a reference as well: base 0 is at address 0.
    """
    return (base << _BASE_SHIFT) | offset


@register_jitable
def address_of(bases: Any, reference: Any) -> Any:
    """The address of a reference, given the addresses of the bases (int64[bases])."""
    return bases[reference >> _BASE_SHIFT] + (reference & _OFFSET)


def view(bases: Any, reference: int, count: int, dtype: Any) -> NDArray[Any]:
    """The `count` elements of `dtype` that lie at a reference, as an array that shares their memory."""
    size = int(count) * np.dtype(dtype).itemsize
    memory = (ctypes.c_uint8 * size).from_address(int(address_of(bases, reference)))
    return np.ctypeslib.as_array(memory).view(dtype)


def _pointer(context, address):
    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


pointer: Any = intrinsic(_pointer)
"""An address as a pointer, for ``numba.carray``."""


@overload(view, strict=False)
def _view(bases, reference, count, dtype):  # pyright: ignore[reportUnusedFunction] registered by its decorator
    def at(bases, reference, count, dtype):
        return carray(pointer(address_of(bases, reference)), count, dtype)

    return at
