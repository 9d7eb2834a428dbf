"""Vectors of codes worked on channel by channel, for depthwise kernels: four taps side by side make a dot product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from qbench.kernels.isa.emit import I8, I16, I32, I64, call, splat
from qbench.kernels.levels import Level

__all__ = ["Lanes"]

Value = Any

_MULTIPLY_ADD = {16: "sse2.pmadd.wd", 32: "avx2.pmadd.wd"}
_NEAREST = {16: "sse2.cvtps2dq", 32: "avx.cvt.ps2dq.256"}
_PACK_32 = {16: "sse2.packssdw.128", 32: "avx2.packssdw", 64: "avx512.packssdw.512"}
_PACK_16 = {16: "sse2.packuswb.128", 32: "avx2.packuswb", 64: "avx512.packuswb.512"}


@dataclass(frozen=True)
class Lanes:
    """Emits code for registers of `width` bytes (16, 32 or 64).

    `weave` turns four vectors of bytes into four whose 32-bit elements hold the same byte of each, and `narrow` undoes
    its order: element ``4 * lane + i`` of woven vector `q` stands for byte ``16 * lane + 4 * q + i``. Both stay within
    128-bit lanes, where shuffles are cheap.
    """

    level: Level
    width: int

    @property
    def ints(self) -> ir.VectorType:
        """A register of int32."""
        return ir.VectorType(I32, self.width // 4)

    @property
    def codes(self) -> ir.VectorType:
        """A register of bytes."""
        return ir.VectorType(I8, self.width)

    @property
    def weight_vectors(self) -> int:
        """Registers of packed weights that one `dot` takes: see `pack_taps` in `kernels.depthwise`."""
        return 2 if self.level is Level.AVX2 else 1

    @property
    def _shorts(self) -> ir.VectorType:
        return ir.VectorType(I16, self.width // 2)

    def weave(self, b: ir.IRBuilder, rows: Sequence[Value]) -> list[Value]:
        """Up to four vectors of bytes as four vectors of 32-bit elements; missing rows count as zeros."""
        zeros = splat(self.codes, 0)
        first, second, third, fourth = [*rows, *[zeros] * (4 - len(rows))]
        woven: list[Value] = []
        for high in (False, True):
            x, y = self._unpack(b, first, second, self.codes, high), self._unpack(b, third, fourth, self.codes, high)
            fours = [self._unpack(b, x, y, self._shorts, part) for part in (False, True)]
            woven += [b.bitcast(four, self.ints) for four in fours]
        return woven

    def _unpack(self, b: ir.IRBuilder, x: Value, y: Value, kind: ir.VectorType, high: bool) -> Value:
        """Elements of the low or high half of each lane, alternately of x and y."""
        lane = 16 * kind.count // self.width
        starts = range(lane // 2 if high else 0, kind.count, lane)
        order = [start + i + side for start in starts for i in range(lane // 2) for side in (0, kind.count)]
        return b.shuffle_vector(
            b.bitcast(x, kind), b.bitcast(y, kind), ir.Constant(ir.VectorType(I32, kind.count), order)
        )

    def dot(self, b: ir.IRBuilder, sums: Value, woven: Value, weights: Sequence[Value]) -> Value:
        """Add to each int32 the products of its four codes and weights; exact, with no saturation on the way."""
        if self.level is not Level.AVX2:
            return self._x86(b, f"avx512.vpdpbusd.{self.width * 8}", self.ints, [sums, woven, weights[0]])
        pairs = b.bitcast(woven, self._shorts)
        halves = b.and_(pairs, splat(self._shorts, 255)), b.lshr(pairs, splat(self._shorts, 8))
        for codes, pair in zip(halves, weights, strict=True):
            factors = [codes, b.bitcast(pair, self._shorts)]
            sums = b.add(sums, self._x86(b, _MULTIPLY_ADD[self.width], self.ints, factors))
        return sums

    def multiply_round(self, b: ir.IRBuilder, sums: Value, multipliers: Value) -> Value:
        """Integers as float32, times float32, to the nearest integers, ties to even. The result must fit in int32."""
        product = b.fmul(b.sitofp(sums, multipliers.type), multipliers)
        if self.width in _NEAREST:
            return self._x86(b, _NEAREST[self.width], self.ints, [product])
        current_mode = [ir.Constant(self.ints, ir.Undefined), I16(-1), I32(4)]
        return self._x86(b, "avx512.mask.cvtps2dq.512", self.ints, [product, *current_mode])

    def high_product(self, b: ir.IRBuilder, x: Value, y: Value, y_odd: Value) -> Value:
        """The upper 32 bits of signed products; `y_odd` holds the odd elements of y in even places."""
        wide = ir.VectorType(I64, self.width // 8)
        half = splat(wide, 32)

        def low(value: Value) -> Value:
            return b.ashr(b.shl(b.bitcast(value, wide), half), half)

        even = b.bitcast(b.mul(low(x), low(y)), self.ints)
        odd = b.bitcast(b.mul(b.ashr(b.bitcast(x, wide), half), low(y_odd)), self.ints)
        count = self.ints.count
        upper = [count + i if i % 2 else i + 1 for i in range(count)]
        return b.shuffle_vector(even, odd, ir.Constant(self.ints, upper))

    def narrow(self, b: ir.IRBuilder, woven: Sequence[Value], zero_point: Value) -> Value:
        """Four woven vectors of int32 plus a vector of zero points (i16), saturated to bytes in order."""
        shorts: list[Value] = []
        for pair in (woven[:2], woven[2:]):
            packed = self._x86(b, _PACK_32[self.width], self._shorts, pair)
            shorts.append(call(b, f"llvm.sadd.sat.v{self._shorts.count}i16", self._shorts, [packed, zero_point]))
        return self._x86(b, _PACK_16[self.width], self.codes, shorts)

    def clamp(self, b: ir.IRBuilder, codes: Value, low: Value, high: Value) -> Value:
        """Bytes between two vectors of bounds."""
        raised = call(b, f"llvm.umax.v{self.width}i8", self.codes, [codes, low])
        return call(b, f"llvm.umin.v{self.width}i8", self.codes, [raised, high])

    def store_some(self, b: ir.IRBuilder, codes: Value, start: Value, count: Value) -> None:
        """Store the first `count` (i64, 1 to `width`) bytes, and touch nothing behind them."""
        bits = ir.IntType(self.width)
        ones = b.lshr(ir.Constant(bits, -1), b.trunc(b.sub(I64(self.width), count), bits))
        mask = b.bitcast(ones, ir.VectorType(ir.IntType(1), self.width))
        place = b.bitcast(start, codes.type.as_pointer())
        call(b, f"llvm.masked.store.v{self.width}i8.p0", ir.VoidType(), [codes, place, I32(1), mask])

    def _x86(self, b: ir.IRBuilder, name: str, result: ir.Type, arguments: Sequence[Value]) -> Value:
        return call(b, f"llvm.x86.{name}", result, arguments)
