"""256-bit vectors of x86: 8 accumulators, 16 registers, with VNNI or without."""

from collections.abc import Sequence
from typing import Any, ClassVar

from llvmlite import ir

from qbench.kernels.isa.base import Isa, Value
from qbench.kernels.isa.emit import F32, I8, I16, I32, I64, call, load, splat, vector
from qbench.kernels.isa.partial import store_by_stack

_LANES = 8
_INTS, _SHORTS, _BYTES = ir.VectorType(I32, _LANES), ir.VectorType(I16, 16), ir.VectorType(I8, 32)
_QUADS = ir.VectorType(I64, 4)


class _Avx(Isa):
    """What the two levels of 256 bits have in common."""

    lanes = _LANES
    registers = 16
    weight_bytes = 32

    def multiply_round(self, b: ir.IRBuilder, accumulators: Value, multipliers: Value) -> Value:
        """Multiply as float32, then ``vcvtps2dq``."""
        product = b.fmul(b.sitofp(accumulators, ir.VectorType(F32, _LANES)), multipliers)
        return call(b, "llvm.x86.avx.cvt.ps2dq.256", _INTS, [product])

    def high_product(self, b: ir.IRBuilder, x: Value, y: Value) -> Value:
        """Multiply even and odd lanes apart (``vpmuldq``), then merge the upper halves."""
        places = splat(_QUADS, 32)
        x, y = b.bitcast(x, _QUADS), b.bitcast(y, _QUADS)
        even = b.mul(b.ashr(b.shl(x, places), places), b.ashr(b.shl(y, places), places))
        odd = b.mul(b.ashr(x, places), b.ashr(y, places))
        upper = [i + 1 if i % 2 == 0 else _LANES + i for i in range(_LANES)]
        return b.shuffle_vector(b.bitcast(even, _INTS), b.bitcast(odd, _INTS), ir.Constant(_INTS, upper))

    def narrow(self, b: ir.IRBuilder, four: Sequence[Value], zero_point: Value | None) -> Value:
        """Pack four vectors to 16 bits, add, pack to 8: the packs work within 128 bits, one permutation mends that."""
        shorts: list[Any] = [call(b, "llvm.x86.avx2.packssdw", _SHORTS, pair) for pair in (four[:2], four[2:])]
        if zero_point is not None:
            zero_points = vector(b, _SHORTS, zero_point)
            shorts = [call(b, "llvm.sadd.sat.v16i16", _SHORTS, [values, zero_points]) for values in shorts]
        codes = b.bitcast(call(b, "llvm.x86.avx2.packuswb", _BYTES, shorts), _INTS)
        order = ir.Constant(_INTS, [4 * lane + source for source in range(4) for lane in range(2)])
        return b.bitcast(b.shuffle_vector(codes, codes, order), _BYTES)

    def store_some(self, b: ir.IRBuilder, values: Value, pointer: Value, count: Value) -> None:
        """By way of the stack: there are no masks for bytes."""
        store_by_stack(b, values, pointer, count)


class AvxVnni(_Avx):
    """The level ``avxvnni``: one instruction for four products a lane."""

    instruction: ClassVar[str] = "vpdpbusd"
    """u8 times s8, summed in 32 bits with no saturation."""

    def dot(self, b: ir.IRBuilder, accumulators: Value, elements: Value, weights: Value) -> Value:
        """Emit `instruction`."""
        return call(b, f"llvm.x86.avx512.{self.instruction}.256", _INTS, [accumulators, elements, weights])


class AvxVnniWords(AvxVnni):
    """The level ``avxvnni`` for elements of 16 bits."""

    group = 2
    instruction = "vpdpwssd"
    """s16 times s16, two of them a lane."""


class Avx2(_Avx):
    """The level ``avx2``: products of 16 bits, because those of bytes (``vpmaddubsw``) saturate.

    Of the four bytes of a lane the even and the odd ones are widened apart.
    """

    def load_input(self, b: ir.IRBuilder, pointer: Value) -> tuple[Value, Value]:
        """Broadcast four bytes: the even and the odd ones."""
        codes = b.bitcast(vector(b, _INTS, load(b, pointer, I32)), _SHORTS)
        return b.and_(codes, splat(_SHORTS, 255)), b.lshr(codes, splat(_SHORTS, 8))

    def load_weights(self, b: ir.IRBuilder, pointer: Value) -> tuple[Value, Value]:
        """Load 32 bytes: the even and the odd ones, with their signs."""
        weights, eight = load(b, pointer, _SHORTS), splat(_SHORTS, 8)
        return b.ashr(b.shl(weights, eight), eight), b.ashr(weights, eight)

    def dot(self, b: ir.IRBuilder, accumulators: Value, elements: Value, weights: Value) -> Value:
        """Emit ``vpmaddwd`` for the even and for the odd bytes."""
        for pair in zip(elements, weights, strict=True):
            accumulators = b.add(accumulators, call(b, "llvm.x86.avx2.pmadd.wd", _INTS, pair))
        return accumulators


class Avx2Words(_Avx):
    """The level ``avx2`` for elements of 16 bits."""

    group = 2

    def dot(self, b: ir.IRBuilder, accumulators: Value, elements: Value, weights: Value) -> Value:
        """Emit ``vpmaddwd``."""
        pair = [b.bitcast(elements, _SHORTS), b.bitcast(weights, _SHORTS)]
        return b.add(accumulators, call(b, "llvm.x86.avx2.pmadd.wd", _INTS, pair))
