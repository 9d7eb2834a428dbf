"""Addresses as arrays: the one place where a kernel turns a number into memory."""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from qbench.kernels.jit import (
    arrays,
    cgutils,
    dtypes,
    intrinsic,
    lower_builtin,
    overload,
    register_jitable,
    type_callable,
    types,
)

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


def array_over(context: Any, b: Any, kind: Any, data: Any, shape: Sequence[Any]) -> Any:
    """LLVM IR of a row-major array of Numba type `kind` that owns nothing, over the memory that a pointer says."""
    element = context.get_data_type(kind.dtype)
    sizes, item = [*shape], ir.IntType(64)(context.get_abi_sizeof(element))
    strides = [item]
    for size in reversed(sizes[1:]):
        strides.insert(0, b.mul(strides[0], size))
    array = arrays.make_array(kind)(context, b)
    data = b.bitcast(data, element.as_pointer())
    arrays.populate_array(array, data=data, shape=sizes, strides=strides, itemsize=item, meminfo=None)
    return array._getvalue()


def _array_at(context, address, shape, dtype):
    sizes = types.UniTuple(types.int64, len(shape) if isinstance(shape, types.BaseTuple) else 1)
    kind = types.Array(dtypes.parse_dtype(dtype), len(sizes), "C")

    def generate(context, b, signature, arguments):
        memory = b.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        sizes = cgutils.unpack_tuple(b, arguments[1]) if isinstance(shape, types.BaseTuple) else [arguments[1]]
        return array_over(context, b, kind, memory, sizes)

    return kind(types.int64, sizes if isinstance(shape, types.BaseTuple) else types.int64, dtype), generate


array_at: Any = intrinsic(_array_at)
"""``array_at(address, shape, dtype)`` in compiled code: the memory at an address as an array."""


@type_callable(view)
def _type_of_view(context):  # pyright: ignore[reportUnusedFunction] registered by its decorator
    def of(bases, reference, count, dtype):
        return types.Array(dtypes.parse_dtype(dtype), 1, "C")

    return of


@lower_builtin(view, "Array", "Integer", "Integer", "Any")
def _lower_view(context, b, signature, arguments):  # pyright: ignore[reportUnusedFunction] registered by its decorator
    bases, reference, count, _ = signature.args
    address = context.compile_internal(b, address_of, types.int64(bases, reference), arguments[:2])
    memory = b.inttoptr(address, ir.IntType(8).as_pointer())
    size = context.cast(b, arguments[2], count, types.int64)
    return array_over(context, b, signature.return_type, memory, [size])


def prefetch(address: Any) -> None:
    """Bring the cache line at an address near: a hint."""


@intrinsic
def _prefetch(context, address):
    def generate(context, b, signature, arguments):
        place = b.inttoptr(arguments[0], ir.IntType(8).as_pointer())
        reads, near, data = (ir.IntType(32)(number) for number in (0, 3, 1))
        kind = ir.FunctionType(ir.VoidType(), [place.type, *[reads.type] * 3])
        b.call(cgutils.get_or_insert_function(b.module, kind, "llvm.prefetch.p0"), [place, reads, near, data])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@overload(prefetch)
def _compiled(address):
    def call(address):
        _prefetch(address)

    return call
