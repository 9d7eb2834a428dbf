"""Short words for emitting LLVM IR."""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from qbench.kernels.jit import cgutils

I8, I16, I32, I64, F32 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()


def call(b: ir.IRBuilder, name: str, result: ir.Type, arguments: Sequence[Any]) -> Any:
    """Call a function of LLVM or of the target by its name."""
    kind = ir.FunctionType(result, [a.type for a in arguments])
    return b.call(cgutils.get_or_insert_function(b.module, kind, name), arguments)


def pointer(b: ir.IRBuilder, address: Any) -> Any:
    """An address (i64) as a pointer to bytes."""
    return b.inttoptr(address, I8.as_pointer())


def at(b: ir.IRBuilder, start: Any, offset: Any) -> Any:
    """The pointer some bytes further; `offset` is an int or an i64."""
    return b.gep(start, [I64(offset) if isinstance(offset, int) else offset])


def load(b: ir.IRBuilder, start: Any, kind: ir.Type, offset: Any = 0) -> Any:
    """Load from a byte pointer plus an offset in bytes, however it is aligned."""
    return b.load(b.bitcast(at(b, start, offset), kind.as_pointer()), align=1)


def store(b: ir.IRBuilder, value: Any, start: Any, offset: Any = 0) -> None:
    """Store at a byte pointer plus an offset in bytes, however it is aligned."""
    b.store(value, b.bitcast(at(b, start, offset), value.type.as_pointer()), align=1)


def splat(kind: ir.VectorType, value: Any) -> ir.Constant:
    """A constant in all lanes."""
    return ir.Constant(kind, [value] * kind.count)


def vector(b: ir.IRBuilder, kind: ir.VectorType, scalar: Any) -> Any:
    """A scalar in all lanes."""
    undefined = ir.Constant(kind, ir.Undefined)
    return b.shuffle_vector(
        b.insert_element(undefined, scalar, I32(0)), undefined, splat(ir.VectorType(I32, kind.count), 0)
    )
