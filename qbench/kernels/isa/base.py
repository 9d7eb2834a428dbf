"""What a vector instruction set does for kernels, in LLVM vector IR that every target can compile."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from llvmlite import ir

from qbench.kernels.isa.emit import F32, I8, I16, I32, at, call, load, splat, vector

Value = Any
"""A value of LLVM IR (llvmlite has no types)."""


class Products(ABC):
    """How a tile sums products: one step takes a few input elements of a row, and their weights for `lanes` channels.

    All methods get the IR builder first.
    """

    lanes: ClassVar[int]
    """Accumulators in one vector: output channels."""

    registers: ClassVar[int]
    """Vector registers: a tile's accumulators and operands must fit."""

    group: ClassVar[int]
    """Input elements of one step: the innermost axis of packed weights."""

    step_bytes: ClassVar[int]
    """Bytes of a step's input elements."""

    weight_bytes: ClassVar[int]
    """Bytes of a step's packed weights for one vector of channels."""

    @property
    @abstractmethod
    def accumulator(self) -> ir.VectorType:
        """The type of one vector of accumulators, of 32 bits each."""

    @abstractmethod
    def load_input(self, b: ir.IRBuilder, pointer: Value) -> Value:
        """A step's input elements at a pointer, repeated for all lanes, in the form that `dot` takes."""

    @abstractmethod
    def load_weights(self, b: ir.IRBuilder, pointer: Value) -> Value:
        """A step's packed weights ``[lanes, group]`` at a pointer, in the form that `dot` takes."""

    @abstractmethod
    def dot(self, b: ir.IRBuilder, accumulators: Value, elements: Value, weights: Value) -> Value:
        """Accumulators plus the sums of `group` products each."""

    def dot_at(self, b: ir.IRBuilder, accumulators: Value, elements: Value, pointer: Value, offset: int) -> Value:
        """`dot` with the weights that lie some bytes behind a pointer, in no register if that can be helped."""
        return self.dot(b, accumulators, elements, self.load_weights(b, at(b, pointer, offset)))


class Isa(Products):
    """One vector instruction set, for integers.

    Input elements are u8, weights s8, and `dot` is exact: nothing saturates on the way. Those for words take elements
    and weights of 16 bits, two a step in place of four; sums that leave 32 bits wrap. Subclasses give that product, and
    override what they can do better.
    """

    group = 4
    step_bytes = 4

    @property
    def accumulator(self) -> ir.VectorType:
        """Vectors of int32."""
        return ir.VectorType(I32, self.lanes)

    def load_input(self, b: ir.IRBuilder, pointer: Value) -> Value:
        """Broadcast a step's bytes."""
        return vector(b, self.accumulator, load(b, pointer, I32))

    def load_weights(self, b: ir.IRBuilder, pointer: Value) -> Value:
        """Load a vector."""
        return load(b, pointer, self.accumulator)

    def multiply_round(self, b: ir.IRBuilder, accumulators: Value, multipliers: Value) -> Value:
        """Integers as float32, times float32, to the nearest integers, ties to even. The result must fit in int32."""
        floats = ir.VectorType(F32, self.lanes)
        product = b.fmul(b.sitofp(accumulators, floats), multipliers)
        return call(b, f"llvm.lrint.v{self.lanes}i32.v{self.lanes}f32", self.accumulator, [product])

    rounds_down: ClassVar[bool] = False
    """Whether instructions can say that they round down, so that there is `multiply_down`."""

    def multiply_down(self, b: ir.IRBuilder, accumulators: Value, high: Value, low: Value) -> Value:
        """The floor of integers below 2^24 times the sum of two floats, where each operation rounds down."""
        raise TypeError(f"{type(self).__name__} cannot round down: ask `rounds_down` before")

    def narrow_halves(self, b: ir.IRBuilder, four: Sequence[Value], zero_point: Value) -> Value:
        """`narrow` of halves of the values, rounded half up."""
        one = splat(self.accumulator, 1)
        return self.narrow(b, [b.ashr(b.add(values, one), one) for values in four], zero_point)

    def high_product(self, b: ir.IRBuilder, x: Value, y: Value) -> Value:
        """The upper 32 bits of signed 32-bit products, lane by lane."""
        wide = ir.VectorType(ir.IntType(64), self.lanes)
        return b.trunc(b.ashr(b.mul(b.sext(x, wide), b.sext(y, wide)), splat(wide, 32)), self.accumulator)

    def narrow(self, b: ir.IRBuilder, four: Sequence[Value], zero_point: Value | None) -> Value:
        """Four vectors of int32, plus a zero point (i16) if any, saturated to u8: ``<4 * lanes x i8>`` in order."""
        zero_points = vector(b, self.accumulator, b.sext(zero_point or I16(0), I32))
        signed = f".v{self.lanes}i32"
        codes: list[Value] = []
        for values in four:
            # Saturated to 16 bits first, so that adding the zero point cannot wrap.
            low = call(b, "llvm.smax" + signed, self.accumulator, [values, splat(self.accumulator, -(2**15))])
            low = call(b, "llvm.smin" + signed, self.accumulator, [low, splat(self.accumulator, 2**15 - 1)])
            low = b.add(low, zero_points)
            low = call(b, "llvm.smax" + signed, self.accumulator, [low, splat(self.accumulator, 0)])
            low = call(b, "llvm.smin" + signed, self.accumulator, [low, splat(self.accumulator, 255)])
            codes.append(b.trunc(low, ir.VectorType(I8, self.lanes)))
        return _joined(b, [_joined(b, codes[:2], self.lanes), _joined(b, codes[2:], self.lanes)], 2 * self.lanes)

    def store_some(self, b: ir.IRBuilder, values: Value, pointer: Value, count: Value) -> None:
        """Store the first `count` (i32, any sign) elements of a vector, and touch nothing behind them."""
        kind = values.type
        index = ir.VectorType(I16, kind.count)
        wanted = call(b, "llvm.smin.i32", I32, [call(b, "llvm.smax.i32", I32, [count, I32(0)]), I32(kind.count)])
        limit = vector(b, index, b.trunc(wanted, I16))
        mask = b.icmp_signed("<", ir.Constant(index, list(range(kind.count))), limit)
        name = f"llvm.masked.store.v{kind.count}{kind.element.intrinsic_name}.p0"
        place = b.bitcast(pointer, kind.as_pointer())
        call(b, name, ir.VoidType(), [values, place, I32(1), mask])


def _joined(b: ir.IRBuilder, pair: Sequence[Value], count: int) -> Value:
    return b.shuffle_vector(pair[0], pair[1], ir.Constant(ir.VectorType(I32, 2 * count), list(range(2 * count))))
