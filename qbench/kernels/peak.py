"""The most that a core can multiply: loops of nothing else, for comparison."""

from typing import Any, Literal

import numpy as np
from llvmlite import ir

from qbench.kernels.isa import ISAS, Isa
from qbench.kernels.isa.amx import MACS, configure, multiply, release
from qbench.kernels.isa.emit import F32, I8, I32, I64, call, store, vector
from qbench.kernels.jit import cgutils, intrinsic, register_jitable, types
from qbench.kernels.kernel import Kernel, KernelFunction, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.stack import stack_array

_CHAINS = 12
"""Independent sums: more than a unit's latency times the units, and few enough for 16 registers."""
_MATRICES = 4
"""The same of sums in matrices."""
_PORTABLE_WIDTH = 64
_UNLIKELY = 0x5EED5EED


def macs_per_iteration(level: Level, dtype: Literal["int8", "float32"]) -> int:
    """Multiplications with addition in one iteration of `peak_kernel`."""
    if level is Level.PORTABLE:
        return _PORTABLE_WIDTH
    if (level, dtype) == (Level.AMX, "int8"):
        return _MATRICES * MACS
    isa = ISAS[level.vectors]
    return _CHAINS * isa.lanes * (isa.group if dtype == "int8" else 1)


@makes_kernels
def peak_kernel(level: Level, dtype: Literal["int8", "float32"]) -> Kernel:
    """A kernel that does ``iterations * macs_per_iteration(level, dtype)`` multiplications with addition.

    Operands stay in registers (portable: in the first cache). Every thread does all of it. `iterations`, the one
    argument, is at least 1.
    """
    if (level, dtype) == (Level.AMX, "int8"):
        function = _matrices()
    else:
        function = _portable(dtype) if level is Level.PORTABLE else _registers(ISAS[level.vectors], dtype)
    return Kernel(f"peak.{level}.{dtype}", record(iterations="i8"), function)


def _matrices() -> KernelFunction:
    @intrinsic
    def products(context):
        def generate(context, b, signature, arguments):
            for sums in range(_MATRICES):
                multiply(b, sums, _MATRICES, _MATRICES + 1)
            return context.get_dummy_value()

        return types.void(), generate

    def peak(args: Any, bases: Any, thread: int, threads: int) -> None:
        configure()
        for _ in range(args.iterations):
            products()
        release()

    return peak


def _registers(isa: Isa, dtype: Literal["int8", "float32"]) -> KernelFunction:
    @intrinsic
    def loop(context, iterations):
        return types.int64(types.int64), lambda context, b, signature, arguments: emit_loop(b, isa, dtype, *arguments)

    def peak(args: Any, bases: Any, thread: int, threads: int) -> None:
        _keep(args, loop(args.iterations))

    return peak


def emit_loop(b: ir.IRBuilder, isa: Isa, dtype: Literal["int8", "float32"], iterations: Any) -> Any:
    """The code of the loop, for any target: an integer that depends on all that was multiplied."""
    kind = isa.accumulator if dtype == "int8" else ir.VectorType(F32, isa.lanes)
    first = vector(b, isa.accumulator, b.trunc(iterations, I32))  # a value that the compiler does not know
    if dtype == "int8":
        start = b.bitcast(cgutils.alloca_once(b, ir.ArrayType(first.type, 4)), I8.as_pointer())
        store(b, first, start)
        elements, weights = isa.load_input(b, start), isa.load_weights(b, start)
    else:
        elements = weights = first = b.sitofp(first, kind)
    before, again, done = b.block, b.append_basic_block("again"), b.append_basic_block("done")
    b.branch(again)

    b.position_at_end(again)
    index, sums = b.phi(I64), [b.phi(kind) for _ in range(_CHAINS)]
    results = list[Any]()
    for total in sums:
        elements = _anew(b, elements)
        if dtype == "int8":
            results.append(isa.dot(b, total, elements, weights))
        else:
            results.append(call(b, f"llvm.fma.v{isa.lanes}f32", kind, [elements, weights, total]))
    following = b.add(index, I64(1))
    b.cbranch(b.icmp_signed("<", following, iterations), again, done)
    for phi, initial in [(index, I64(0)), *((total, first) for total in sums)]:
        phi.add_incoming(initial, before)
    for phi, result in zip([index, *sums], [following, *results], strict=True):
        phi.add_incoming(result, again)

    b.position_at_end(done)
    mixed = I32(0)
    for result in results:
        mixed = b.xor(mixed, b.bitcast(b.extract_element(result, I32(0)), I32))
    return b.sext(mixed, I64)


def _anew(b: ir.IRBuilder, loaded: Any) -> Any:
    """The same registers, but for all that the compiler knows with other values: else equal products are made once."""
    if isinstance(loaded, tuple):
        one, other = loaded  # pyright: ignore[reportUnknownVariableType] llvmlite has no types
        return _anew(b, one), _anew(b, other)
    kept = ir.InlineAsm(ir.FunctionType(loaded.type, [loaded.type]), "", "=x,0", side_effect=True)
    return b.call(kept, [loaded])


def _portable(dtype: str) -> KernelFunction:
    element, total = (np.int8, np.int32) if dtype == "int8" else (np.float32, np.float32)

    def peak(args: Any, bases: Any, thread: int, threads: int) -> None:
        sums, weights = stack_array(_PORTABLE_WIDTH, total), stack_array(_PORTABLE_WIDTH, element)
        sums[:], weights[:] = 0, 1
        for i in range(args.iterations):
            factor = total(i & 3)
            for c in range(_PORTABLE_WIDTH):
                sums[c] += factor * total(weights[c])
        _keep(args, np.int64(sums[0]))

    return peak


@register_jitable
def _keep(args: Any, result: Any) -> None:
    """Use a result, so that the compiler does not leave out what makes it."""
    if result == _UNLIKELY:
        args.iterations = result
