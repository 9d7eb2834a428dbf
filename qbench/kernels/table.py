"""Table look-up: any function of one 8- or 16-bit integer, and so every requantize of 8-bit codes."""

from collections.abc import Sequence
from typing import Any, Literal

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from qbench.kernels.isa import ISAS, Isa
from qbench.kernels.isa.emit import I8, I16, I32, I64, at, call, load, pointer, splat, store
from qbench.kernels.jit import intrinsic, register_jitable, types
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import address_of, prefetch, view
from qbench.kernels.rows import Elementwise, loop, make_rows
from qbench.kernels.split import at as index
from qbench.kernels.split import share

_FIELDS = ("x", "out", "table", "outer", "channels", "inner", "x_pitch", "out_pitch")
_LINE = 64  # bytes of a cache line
_MANY = 4096
"""Look-ups that are worth bringing a large table near in one go: they would touch most of it, line by line."""
_CODES = ir.VectorType(I8, 64)


@makes_kernels
def table_kernel(level: Level, x: Literal["u1", "i2"], item: int) -> Kernel:
    """``out = table[channel, x - smallest]`` over [outer, channels, inner], for results of `item` bytes of any type.

    `table` holds one row of 256 or 65,536 results for each of the `channels` (1: the same table for all). `x_pitch` and
    `out_pitch` elements lie between one outer index and the next.
    """
    if x == "u1" and item == 1 and level == Level.AVX512VNNI and llvm.get_host_cpu_features().get("avx512vbmi"):
        return _vector_kernel(ISAS[level])
    return _plain_kernel(x, item, x != "u1" and item == 2 and level in ISAS)


@makes_kernels
def _plain_kernel(x: Literal["u1", "i2"], item: int, eights: bool = False) -> Kernel:
    """`eights`: eight results are written at a time."""
    dtype, result = np.dtype(x).type, np.dtype(f"u{item}").type
    smallest, entries, x_wide = int(np.iinfo(x).min), 256 if x == "u1" else 65536, x != "u1"
    in_eights = _in_eights(smallest) if eights else _none

    def look_up(args, bases, thread, threads):
        outer, channels, inner, x_pitch, out_pitch = args.outer, args.channels, args.inner, args.x_pitch, args.out_pitch
        count = channels * inner
        first, end = share(outer * count, thread, threads, 64)
        if first >= end:
            return
        x = view(bases, args.x, (outer - 1) * x_pitch + count, dtype)
        out = view(bases, args.out, (outer - 1) * out_pitch + count, result)
        table = view(bases, args.table, channels * entries, result)
        if x_wide and channels == 1 and end - first > _MANY:
            for line in range(0, entries * item, _LINE):
                prefetch(address_of(bases, args.table) + line)
        row, column = first // count, first % count
        channel = column // inner
        while first < end:
            length = min(end - first, count - column if inner == 1 else (channel + 1) * inner - column)
            a, b, zero = row * x_pitch + column, row * out_pitch + column, channel * entries - smallest
            if inner == 1 and channels > 1:
                for i in range(length):
                    out[index(b + i)] = table[index(zero + i * entries + np.int64(x[index(a + i)]))]
            else:
                done = in_eights(
                    address_of(bases, args.x) + 2 * a,
                    address_of(bases, args.out) + 2 * b,
                    address_of(bases, args.table) + 2 * channel * entries,
                    length,
                )
                for i in range(done, length):
                    out[index(b + i)] = table[index(zero + np.int64(x[index(a + i)]))]
            first, column, channel = first + length, column + length, channel + 1
            if column == count:  # no division: rows may be short
                row, column, channel = row + 1, 0, 0

    return Kernel(f"table.{x}.{item}{'.eights' if eights else ''}", record(**dict.fromkeys(_FIELDS, "i8")), look_up)


@register_jitable
def _none(x: Any, out: Any, table: Any, count: Any) -> Any:
    return 0


def _in_eights(smallest: int) -> Any:
    """A Numba function that looks up 16-bit codes as far as they come in eights, and says how many it did.

    Codes come from memory four at a time and results go there eight at a time: less to do than one by one.
    """
    eight, flip = ir.VectorType(I16, 8), I64(0x8000800080008000 if smallest else 0)

    @intrinsic
    def in_eights(context, x, out, table, count):
        def generate(context, b, signature, arguments):
            x, out, table = (pointer(b, address) for address in arguments[:3])
            done = b.and_(arguments[3], I64(-8))
            with loop(b, done, 8) as i:
                results, start = ir.Constant(eight, ir.Undefined), b.mul(i, I64(2))
                for half in range(2):
                    codes = b.xor(load(b, at(b, x, start), I64, 8 * half), flip)
                    for j in range(4):
                        code = b.and_(b.lshr(codes, I64(16 * j)), I64(0xFFFF))
                        result = load(b, table, I16, b.mul(code, I64(2)))
                        results = b.insert_element(results, result, I32(4 * half + j))
                store(b, results, at(b, out, start))
            return done

        return types.int64(*[types.int64] * 4), generate

    return in_eights


def _vector_kernel(isa: Isa) -> Kernel:
    rows = make_rows(isa, _Lookup())
    plain = register_jitable(_plain_kernel("u1", 1).function)

    def look_up(args, bases, thread, threads):
        if args.channels > 1:
            plain(args, bases, thread, threads)
            return
        x, out, x_pitch, out_pitch = (
            address_of(bases, args.x),
            address_of(bases, args.out),
            args.x_pitch,
            args.out_pitch,
        )
        row, last, column, end = 0, args.outer, 0, args.inner
        if args.outer == 1:
            column, end = share(args.inner, thread, threads, 64)
        else:
            row, last = share(args.outer, thread, threads)
        table = address_of(bases, args.table)
        x, out = x + row * x_pitch + column, out + row * out_pitch + column
        rows((x,), (x_pitch,), (1,), out, out_pitch, last - row, end - column, (table,))

    return Kernel("table.u1.1.vbmi", record(**dict.fromkeys(_FIELDS, "i8")), look_up)


class _Lookup(Elementwise):
    """The table in four registers: one permutation looks up 64 codes in half of it, the code's upper bit says which."""

    inputs = ("u1",)
    output = "u1"

    def prepare(self, b: ir.IRBuilder, isa: Isa, operands: Sequence[Any]) -> Any:
        return [load(b, pointer(b, operands[0]), _CODES, 64 * quarter) for quarter in range(4)]

    def apply(self, b: ir.IRBuilder, isa: Isa, prepared: Any, vectors: Sequence[Any]) -> Any:
        (x,) = vectors
        lower, upper = (
            call(b, "llvm.x86.avx512.vpermi2var.qi.512", _CODES, [first, x, second])
            for first, second in (prepared[:2], prepared[2:])
        )
        return b.select(b.icmp_signed("<", x, splat(_CODES, 0)), upper, lower)
