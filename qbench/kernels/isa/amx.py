"""AMX: products of whole matrices, 16 rows of 64 codes times weights for 16 channels by one instruction.

There are eight registers of 16 rows and 64 bytes. Here four hold sums, two the rows of codes, two the weights.
"""

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from qbench.kernels.isa.emit import I8, I64, at, call
from qbench.kernels.jit import cgutils, intrinsic, types

ROWS, BYTES = 16, 64
"""Of a register."""

MACS = ROWS * ROWS * BYTES
"""Products of one `multiply`."""

_REGISTERS = 8


def _instruction(b: ir.IRBuilder, name: str, *arguments: Any) -> None:
    call(b, f"llvm.x86.{name}", ir.VoidType(), [I8(a) if isinstance(a, int) else a for a in arguments])


@intrinsic
def configure(context):
    """Give all registers of this thread their full size; before anything else, and they are free after `release`."""

    def generate(context, b, signature, arguments):
        shape = [1, *[0] * 15, *[BYTES, 0] * _REGISTERS, *[0] * 16, *[ROWS] * _REGISTERS, *[0] * 8]
        constant = cgutils.global_constant(b.module, "amx.shape", ir.Constant(ir.ArrayType(I8, 64), shape))
        _instruction(b, "ldtilecfg", b.bitcast(constant, I8.as_pointer()))
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def release(context):
    """Let the system know that this thread's registers hold nothing that it must save."""

    def generate(context, b, signature, arguments):
        _instruction(b, "tilerelease")
        return context.get_dummy_value()

    return types.void(), generate


def load(b: ir.IRBuilder, register: int, start: Any, pitch: Any) -> None:
    """Fill a register with rows of 64 bytes that lie `pitch` (i64) bytes apart; 0: all the same."""
    _instruction(b, "tileloadd64", register, start, pitch)


def store(b: ir.IRBuilder, register: int, start: Any, pitch: int) -> None:
    """Write a register's rows."""
    _instruction(b, "tilestored64", register, start, I64(pitch))


def multiply(b: ir.IRBuilder, sums: int, codes: int, weights: int) -> None:
    """Add to each of 16 times 16 sums 64 products of u8 and s8, whose order is that of `sum_products`."""
    _instruction(b, "tdpbusd", sums, codes, weights)


def sum_products(
    b: ir.IRBuilder, x: Any, x_pitch: Any, weights: Any, steps: Any, parts: Any, bias: Any
) -> Sequence[Sequence[int]]:
    """Multiply 32 rows of u8 with s8 weights for 32 channels, in steps of 64 codes; at least one.

    Parameters
    ----------
    x, x_pitch
        Pointer to the first row, and bytes from row to row (i64).
    weights
        Pointer to ``[parts, steps, 16, 32, 4]``: four codes of each channel side by side.
    steps, parts
        How many steps, and how many parts weights have: each is multiplied with the same rows (i64).
    bias
        Pointer to 32 int32: what the sums start from.

    Returns
    -------
    The registers of the sums, int32: ``[rows / 16][channels / 16]``.

    Notes
    -----
    ``tdpbusd`` adds four products to each sum of 32 bits, and wraps: the bits of ``vpdpbusd``.
    """
    sums, codes, factors, pitch = ((0, 1), (2, 3)), (4, 5), (6, 7), 2 * BYTES
    for row in sums:
        for register, channel in zip(row, (0, BYTES), strict=True):
            load(b, register, at(b, bias, channel), I64(0))
    before = b.block
    each_part, each_step, next_part, done = (b.append_basic_block(n) for n in ("part", "step", "next_part", "done"))
    b.branch(each_part)

    b.position_at_end(each_part)
    part, start = b.phi(I64), b.phi(weights.type)
    b.branch(each_step)

    b.position_at_end(each_step)
    step, here, place = b.phi(I64), b.phi(x.type), b.phi(weights.type)
    for i, register in enumerate(factors):
        load(b, register, at(b, place, i * BYTES), I64(pitch))
    for i, (register, row) in enumerate(zip(codes, sums, strict=True)):
        load(b, register, at(b, here, b.mul(x_pitch, I64(i * ROWS))), x_pitch)
        for total, factor in zip(row, factors, strict=True):
            multiply(b, total, register, factor)
    following, onward, further = b.add(step, I64(1)), at(b, here, BYTES), at(b, place, ROWS * pitch)
    b.cbranch(b.icmp_signed("<", following, steps), each_step, next_part)

    b.position_at_end(next_part)
    another = b.add(part, I64(1))
    b.cbranch(b.icmp_signed("<", another, parts), each_part, done)

    for phi, initial, again in [(part, I64(0), another), (start, weights, further)]:
        phi.add_incoming(initial, before)
        phi.add_incoming(again, next_part)
    for phi, initial, again in [(step, I64(0), following), (here, x, onward), (place, start, further)]:
        phi.add_incoming(initial, each_part)
        phi.add_incoming(again, each_step)
    b.position_at_end(done)
    return sums
