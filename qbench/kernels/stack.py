"""Scratch memory of a kernel: on its thread's stack, so that nothing is allocated while a network runs."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import RequireLiteralValue
from numba.extending import intrinsic, register_jitable

__all__ = ["stack"]


@register_jitable(inline="always")
def stack(size: Any) -> Any:
    """The address of `size` bytes (a constant), aligned to 64, which live until the kernel returns."""
    return _stack(size)  # pyright: ignore[reportCallIssue] intrinsics get a context besides


@intrinsic
def _stack(context, size):
    if not isinstance(size, types.IntegerLiteral):
        raise RequireLiteralValue("the size of scratch memory must be a constant")

    def generate(context, b, signature, arguments):
        memory = cgutils.alloca_once(b, ir.ArrayType(ir.IntType(8), size.literal_value))
        memory.align = 64
        return b.ptrtoint(memory, ir.IntType(64))

    return types.int64(size), generate
