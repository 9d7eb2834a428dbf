"""Scratch memory of a kernel: on its thread's stack, so that nothing is allocated while a network runs.

It lives until the function returns that asks for it: never ask in one that Numba may compile apart and return it.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from qbench.kernels.jit import dtypes, errors, intrinsic, lower_builtin, type_callable, types
from qbench.kernels.memory import array_over

_WORD = ir.IntType(64)


def _memory(b: Any, size: int) -> Any:
    """Not with `cgutils.alloca_once`: it fills all with zeros, byte by byte."""
    with b.goto_entry_block():
        memory = b.alloca(ir.ArrayType(ir.IntType(8), size))
    memory.align = 64
    return memory


def _stack(context, size):
    if not isinstance(size, types.IntegerLiteral):
        raise errors.RequireLiteralValue("the size of scratch memory must be a constant")

    def generate(context, b, signature, arguments):
        return b.ptrtoint(_memory(b, size.literal_value), _WORD)

    return types.int64(size), generate


stack: Any = intrinsic(_stack)
"""``stack(size)``: the address of `size` bytes (a constant), aligned to 64."""


def stack_array(count: int, dtype: Any) -> NDArray[Any]:
    """An array of `count` elements (a constant) of `dtype`, aligned to 64; what it holds at first is not known."""
    return np.empty(count, dtype)


@type_callable(stack_array)
def _type_of_array(context):  # pyright: ignore[reportUnusedFunction] registered by its decorator
    def of(count, dtype):
        return types.Array(dtypes.parse_dtype(dtype), 1, "C") if isinstance(count, types.IntegerLiteral) else None

    return of


@lower_builtin(stack_array, "IntegerLiteral", "Any")
def _lower_array(context, b, signature, arguments):  # pyright: ignore[reportUnusedFunction] registered
    kind, count = signature.return_type, signature.args[0].literal_value
    item = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    return array_over(context, b, kind, _memory(b, count * item), [_WORD(count)])
