"""AVX-512 with VNNI: 16 accumulators a vector, 32 registers, four products a lane and cycle."""

from collections.abc import Sequence
from typing import ClassVar

import llvmlite.binding as llvm
from llvmlite import ir

from qbench.kernels.isa.base import Isa, Value
from qbench.kernels.isa.emit import F32, I8, I16, I32, I64, call, splat, vector

llvm.initialize_native_asmparser()  # for `dot_at`

_LANES = 16
_INTS, _SHORTS, _BYTES = ir.VectorType(I32, _LANES), ir.VectorType(I16, 32), ir.VectorType(I8, 64)
_QUADS, _FLOATS = ir.VectorType(I64, 8), ir.VectorType(F32, _LANES)
_DOWN = I32(9)
"""Of an instruction: towards minus infinity, without exceptions."""


class Avx512Vnni(Isa):
    """The level ``avx512vnni``."""

    lanes = _LANES
    registers = 32
    weight_bytes = 64
    instruction: ClassVar[str] = "vpdpbusd"
    """u8 times s8, summed in 32 bits with no saturation."""

    def dot(self, b: ir.IRBuilder, accumulators: Value, elements: Value, weights: Value) -> Value:
        """Emit `instruction`."""
        return _call(b, f"{self.instruction}.512", _INTS, [accumulators, elements, weights])

    def dot_at(self, b: ir.IRBuilder, accumulators: Value, elements: Value, pointer: Value, offset: int) -> Value:
        """Emit it with an operand in memory, where LLVM would load it once and spill another register."""
        kind = ir.FunctionType(_INTS, [_INTS, _INTS, pointer.type])
        code = ir.InlineAsm(kind, f"{self.instruction} {offset}($3), $2, $0", "=v,0,v,r")
        return b.call(code, [accumulators, elements, pointer])

    def high_product(self, b: ir.IRBuilder, x: Value, y: Value) -> Value:
        """Multiply even and odd lanes apart (``vpmuldq``), then merge the upper halves."""
        even, odd = (b.bitcast(_multiply(b, x, y, odd), _INTS) for odd in (False, True))
        upper = [i + 1 if i % 2 == 0 else _LANES + i for i in range(_LANES)]
        return b.shuffle_vector(even, odd, ir.Constant(_INTS, upper))

    rounds_down = True

    def multiply_down(self, b: ir.IRBuilder, accumulators: Value, high: Value, low: Value) -> Value:
        """Emit instructions that say how they round."""
        floats = b.sitofp(accumulators, _FLOATS)
        rest = _call(b, "mul.ps.512", _FLOATS, [floats, low, _DOWN])
        product = _call(b, "vfmadd.ps.512", _FLOATS, [floats, high, rest, _DOWN])
        everywhere = [ir.Constant(_INTS, ir.Undefined), I16(-1)]
        return _call(b, "mask.cvtps2dq.512", _INTS, [product, *everywhere, _DOWN])

    def narrow(self, b: ir.IRBuilder, four: Sequence[Value], zero_point: Value | None) -> Value:
        """Pack four vectors to 16 bits, add, pack to 8: the packs work within 128 bits, one permutation mends that."""
        shorts = _packed(b, four)
        return _bytes(b, shorts if zero_point is None else _raised(b, shorts, zero_point))

    def narrow_halves(self, b: ir.IRBuilder, four: Sequence[Value], zero_point: Value) -> Value:
        """Add twice the zero point and one, and shift, in 16 bits."""
        twice = b.add(b.shl(zero_point, I16(1)), I16(1))
        return _bytes(b, [b.ashr(short, splat(_SHORTS, 1)) for short in _raised(b, _packed(b, four), twice)])


class Avx512Words(Avx512Vnni):
    """The level ``avx512vnni`` for elements of 16 bits."""

    group = 2
    instruction = "vpdpwssd"
    """s16 times s16, two of them a lane."""


def _packed(b: ir.IRBuilder, four: Sequence[Value]) -> list[Value]:
    return [_call(b, "packssdw.512", _SHORTS, pair) for pair in (four[:2], four[2:])]


def _raised(b: ir.IRBuilder, shorts: Sequence[Value], by: Value) -> list[Value]:
    added = vector(b, _SHORTS, by)
    return [call(b, "llvm.sadd.sat.v32i16", _SHORTS, [short, added]) for short in shorts]


def _bytes(b: ir.IRBuilder, shorts: Sequence[Value]) -> Value:
    codes = b.bitcast(_call(b, "packuswb.512", _BYTES, shorts), _INTS)
    order = [4 * lane + source for source in range(4) for lane in range(4)]
    return b.bitcast(b.shuffle_vector(codes, codes, ir.Constant(_INTS, order)), _BYTES)


def _call(b: ir.IRBuilder, name: str, result: ir.Type, arguments: Sequence[Value]) -> Value:
    return call(b, f"llvm.x86.avx512.{name}", result, arguments)


def _multiply(b: ir.IRBuilder, x: Value, y: Value, odd: bool) -> Value:
    """64-bit products of the even or the odd lanes."""
    factors: list[Value] = []
    for factor in (x, y):
        quads = b.bitcast(factor, _QUADS)
        factors.append(b.ashr(quads if odd else b.shl(quads, splat(_QUADS, 32)), splat(_QUADS, 32)))
    return b.mul(*factors)
