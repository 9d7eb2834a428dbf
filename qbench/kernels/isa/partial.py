"""Stores of a part of a vector, where an instruction set has no masks for it."""

from typing import Any

from llvmlite import ir

from qbench.kernels.isa.emit import I8, I32, I64, call, store
from qbench.kernels.jit import cgutils


def store_by_stack(b: ir.IRBuilder, values: Any, pointer: Any, count: Any) -> None:
    """Store the first `count` (i32, any sign) elements of a vector by way of the stack; touch nothing behind."""
    kind = values.type
    wanted = call(b, "llvm.smin.i32", I32, [call(b, "llvm.smax.i32", I32, [count, I32(0)]), I32(kind.count)])
    size = b.mul(b.zext(wanted, I64), I64(kind.element.width // 8))
    memory = b.bitcast(cgutils.alloca_once(b, kind), I8.as_pointer())
    store(b, values, memory)
    call(b, "llvm.memcpy.p0.p0.i64", ir.VoidType(), [pointer, memory, size, ir.Constant(ir.IntType(1), 0)])
