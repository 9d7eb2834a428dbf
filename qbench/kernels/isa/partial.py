"""Stores of a part of a vector, where an instruction set has no masks for it."""

from typing import Any

from llvmlite import ir

from qbench.kernels.isa.emit import I8, I32, I64, call, store
from qbench.kernels.jit import cgutils


def store_by_stack(b: ir.IRBuilder, values: Any, pointer: Any, count: Any) -> None:
    """Store the first `count` (i32, any sign) elements of a vector; touch nothing behind.

    All of them at once, fewer by way of the stack, where a call copies them.
    """
    kind = values.type
    with b.if_else(b.icmp_signed(">=", count, I32(kind.count)), likely=True) as (all_of_it, some):
        with all_of_it:
            store(b, values, pointer)
        with some:
            size = b.zext(call(b, "llvm.smax.i32", I32, [count, I32(0)]), I64)
            memory = b.bitcast(cgutils.alloca_once(b, kind), I8.as_pointer())
            store(b, values, memory)
            size = b.mul(size, I64(kind.element.width // 8))
            call(b, "llvm.memcpy.p0.p0.i64", ir.VoidType(), [pointer, memory, size, ir.Constant(ir.IntType(1), 0)])
