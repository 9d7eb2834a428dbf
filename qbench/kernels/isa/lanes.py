"""Vectors of codes worked on channel by channel, for depthwise kernels: taps side by side make a dot product."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from qbench.kernels.isa.avx512 import Avx512Vnni
from qbench.kernels.isa.emit import I8, I16, I32, I64, call, splat
from qbench.kernels.isa.partial import store_by_stack
from qbench.kernels.levels import Level

Value = Any

_NEAREST = {16: "sse2.cvtps2dq", 32: "avx.cvt.ps2dq.256"}
_PACK_32 = {16: "sse2.packssdw.128", 32: "avx2.packssdw", 64: "avx512.packssdw.512"}
_PACK_16 = {16: "sse2.packuswb.128", 32: "avx2.packuswb", 64: "avx512.packuswb.512"}


@dataclass(frozen=True)
class Lanes:
    """Emits code for registers of `width` bytes (16, 32 or 64) on x86.

    `weave` turns as many vectors of codes as `taps` says into as many whose 32-bit elements hold the same channel of
    each, and `words` and `bytes` undo its order: element ``4 * lane + i`` of woven vector `q` stands for channel
    ``4 * taps * lane + 4 * q + i``. All stay within 128-bit lanes, where shuffles are cheap.
    """

    level: Level
    width: int
    wide: bool = False
    """Whether weights have 16 bits."""

    @property
    def taps(self) -> int:
        """Taps of one `dot`: four bytes, or two of 16 bits where instructions for bytes saturate."""
        return 2 if self.level is Level.AVX2 else 4

    @property
    def channels(self) -> int:
        """Codes that are worked on at once."""
        return self.width // 4 * self.taps

    @property
    def pairs(self) -> int:
        """Pairs of woven vectors: each gives a register of int16."""
        return self.taps // 2

    @property
    def ints(self) -> ir.VectorType:
        """A register of int32."""
        return ir.VectorType(I32, self.width // 4)

    @property
    def shorts(self) -> ir.VectorType:
        """A register of int16."""
        return ir.VectorType(I16, self.width // 2)

    @property
    def codes(self) -> ir.VectorType:
        """One byte for each channel."""
        return ir.VectorType(I8, self.channels)

    @property
    def weight_vectors(self) -> int:
        """Registers of weights that one `dot` takes: one, or of four wide ones the even and the odd ones."""
        return 2 if self.wide and self.taps == 4 else 1

    @property
    def weight_type(self) -> type[np.int8 | np.int16]:
        """Of a weight."""
        return np.int16 if self.wide or self.taps == 2 else np.int8

    @property
    def order(self) -> NDArray[np.int64]:
        """The channel that each element of each woven vector stands for, [taps, elements]."""
        q, element = np.mgrid[0 : self.taps, 0 : self.lanes]
        return 4 * self.taps * (element // 4) + 4 * q + element % 4

    def weave(self, b: ir.IRBuilder, codes: Sequence[Value]) -> list[Value]:
        """`taps` vectors of codes, or less and zeros, as vectors of 32-bit elements."""
        codes = [*codes, *[splat(self.codes, 0)] * (self.taps - len(codes))]
        if self.taps == 2:
            x, y = (b.zext(tap, self.shorts) for tap in codes)
            return [b.bitcast(self._unpack(b, x, y, self.shorts, half), self.ints) for half in (0, 1)]
        x, y, z, w = codes
        woven: list[Value] = []
        for half in (0, 1):
            xy, zw = self._unpack(b, x, y, self.codes, half), self._unpack(b, z, w, self.codes, half)
            woven += [b.bitcast(self._unpack(b, xy, zw, self.shorts, part), self.ints) for part in (0, 1)]
        return woven

    def _unpack(self, b: ir.IRBuilder, x: Value, y: Value, kind: ir.VectorType, half: int) -> Value:
        """Elements of the low (0) or high (1) half of each lane, alternately of x and y."""
        lane = 16 * kind.count // self.width
        starts = range(half * lane // 2, kind.count, lane)
        order = [start + i + side for start in starts for i in range(lane // 2) for side in (0, kind.count)]
        places = ir.Constant(ir.VectorType(I32, kind.count), order)
        return b.shuffle_vector(b.bitcast(x, kind), b.bitcast(y, kind), places)

    def dot(self, b: ir.IRBuilder, sums: Value, woven: Value, weights: Sequence[Value]) -> Value:
        """Add to each int32 the products of its codes and weights; exact, with no saturation on the way."""
        if self.taps == 2:
            factors = [b.bitcast(factor, self.shorts) for factor in (woven, weights[0])]
            return b.add(sums, self._x86(b, "avx2.pmadd.wd", self.ints, factors))
        if self.weight_vectors == 1:
            return self._x86(b, f"avx512.vpdpbusd.{self.width * 8}", self.ints, [sums, woven, weights[0]])
        pairs = b.bitcast(woven, self.shorts)
        halves = b.and_(pairs, splat(self.shorts, 255)), b.lshr(pairs, splat(self.shorts, 8))
        for codes, pair in zip(halves, weights, strict=True):
            factors = [b.bitcast(codes, self.ints), pair]
            sums = self._x86(b, f"avx512.vpdpwssd.{self.width * 8}", self.ints, [sums, *factors])
        return sums

    @property
    def lanes(self) -> int:
        """Elements of `ints`."""
        return self.width // 4

    def multiply_round(self, b: ir.IRBuilder, sums: Value, multipliers: Value) -> Value:
        """Integers as float32, times float32, to the nearest integers, ties to even. The result must fit in int32."""
        product = b.fmul(b.sitofp(sums, multipliers.type), multipliers)
        if self.width in _NEAREST:
            return self._x86(b, _NEAREST[self.width], self.ints, [product])
        current_mode = [ir.Constant(self.ints, ir.Undefined), I16(-1), I32(4)]
        return self._x86(b, "avx512.mask.cvtps2dq.512", self.ints, [product, *current_mode])

    def multiply_down(self, b: ir.IRBuilder, sums: Value, high: Value, low: Value) -> Value:
        """See `Isa.multiply_down`; for 64 bytes."""
        return Avx512Vnni().multiply_down(b, sums, high, low)

    def high_product(self, b: ir.IRBuilder, x: Value, y: Value) -> Value:
        """The upper 32 bits of signed products."""
        wide = ir.VectorType(I64, self.width // 8)
        half = splat(wide, 32)
        x, y = b.bitcast(x, wide), b.bitcast(y, wide)
        even = b.mul(b.ashr(b.shl(x, half), half), b.ashr(b.shl(y, half), half))
        odd = b.mul(b.ashr(x, half), b.ashr(y, half))
        upper = [self.lanes + i if i % 2 else i + 1 for i in range(self.lanes)]
        return b.shuffle_vector(b.bitcast(even, self.ints), b.bitcast(odd, self.ints), ir.Constant(self.ints, upper))

    def joined(self, b: ir.IRBuilder, parts: Sequence[Value]) -> Value:
        """Narrower registers of int32 side by side."""
        if len(parts) == 1:
            return parts[0]
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        return self.joined(b, [b.shuffle_vector(x, y, _places(0, 2 * x.type.count)) for x, y in pairs])

    def parts(self, b: ir.IRBuilder, whole: Value, count: int) -> list[Value]:
        """What `joined` has joined."""
        size = self.lanes // count
        if count == 1:
            return [whole]
        return [b.shuffle_vector(whole, whole, _places(i * size, size)) for i in range(count)]

    def words(self, b: ir.IRBuilder, pair: Sequence[Value]) -> Value:
        """Woven vectors 0 and 1, or 2 and 3, rescaled and saturated to int16."""
        return self._x86(b, _PACK_32[self.width], self.shorts, pair)

    def bytes(self, b: ir.IRBuilder, words: Sequence[Value], low: Value, high: Value) -> Value:
        """All `words` as bytes in order, between vectors of bounds."""
        if len(words) == 1:
            half = self.width // 4
            words = [b.shuffle_vector(words[0], words[0], _places(start, half)) for start in (0, half)]
        packed = self._x86(b, _PACK_16[self.channels], self.codes, words)
        raised = call(b, f"llvm.umax.v{self.channels}i8", self.codes, [packed, low])
        return call(b, f"llvm.umin.v{self.channels}i8", self.codes, [raised, high])

    def store_some(self, b: ir.IRBuilder, codes: Value, start: Value, count: Value) -> None:
        """Store the first `count` (i64, 1 to `channels`) bytes, and touch nothing behind them."""
        if self.level is not Level.AVX512VNNI:
            store_by_stack(b, codes, start, b.trunc(count, I32))
            return
        bits = ir.IntType(self.width)
        ones = b.lshr(ir.Constant(bits, -1), b.trunc(b.sub(I64(self.width), count), bits))
        mask = b.bitcast(ones, ir.VectorType(ir.IntType(1), self.width))
        place = b.bitcast(start, codes.type.as_pointer())
        call(b, f"llvm.masked.store.v{self.width}i8.p0", ir.VoidType(), [codes, place, I32(1), mask])

    def _x86(self, b: ir.IRBuilder, name: str, result: ir.Type, arguments: Sequence[Value]) -> Value:
        return call(b, f"llvm.x86.{name}", result, arguments)


def _places(start: int, count: int) -> ir.Constant:
    return ir.Constant(ir.VectorType(I32, count), list(range(start, start + count)))
