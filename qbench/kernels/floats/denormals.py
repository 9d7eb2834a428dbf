"""Numbers below the normal range count as zero while a kernel multiplies: with one of them a product takes 100 times as
long, and trained weights hold some. What is lost lies below 1e-37.
"""

from typing import Any

from llvmlite import ir

from qbench.kernels.isa.emit import I32
from qbench.kernels.jit import cgutils, intrinsic, register_jitable, types
from qbench.kernels.kernel import KernelFunction

_ZEROS = (1 << 15) | (1 << 6)
"""In the control word of x86's vectors: results below the range become zero, and operands count as zero."""


def without_denormals(function: KernelFunction) -> KernelFunction:
    """The kernel in that mode; for x86, on its thread, until it returns."""
    inner = register_jitable(function)

    def run(args: Any, bases: Any, thread: int, threads: int) -> None:
        before = _control()
        _set_control(before | _ZEROS)
        inner(args, bases, thread, threads)
        _set_control(before)

    return run


def _emit(b: ir.IRBuilder, name: str, place: Any) -> None:
    """An instruction that moves the control word; no memory is read earlier or written later."""
    b.asm(ir.FunctionType(ir.VoidType(), [place.type]), f"{name} ($0)", "r,~{memory}", [place], True)


@intrinsic
def _control(context):
    def generate(context, b, signature, arguments):
        place = cgutils.alloca_once(b, I32)
        _emit(b, "stmxcsr", place)
        return b.load(place)

    return types.int32(), generate


@intrinsic
def _set_control(context, word):
    def generate(context, b, signature, arguments):
        place = cgutils.alloca_once(b, I32)
        b.store(b.trunc(arguments[0], I32), place)
        _emit(b, "ldmxcsr", place)
        return context.get_dummy_value()

    return types.void(types.int64), generate
