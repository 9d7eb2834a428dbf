"""Arm's 128-bit vectors with dot products: 4 accumulators, 32 registers.

No machine of the project has them: tests compile tiles for them and look at the instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from qbench.kernels.isa.base import Isa, Value
from qbench.kernels.isa.emit import F32, I8, I16, I32, call, load, splat, vector
from qbench.kernels.isa.partial import store_by_stack

__all__ = ["ArmDot", "ArmMixedDot"]

_LANES = 4
_INTS, _SHORTS, _BYTES = ir.VectorType(I32, _LANES), ir.VectorType(I16, 8), ir.VectorType(I8, 16)
_HALF = ir.VectorType(I8, 8)


class _Arm(Isa):
    lanes = _LANES
    registers = 32
    weight_bytes = 16

    def load_input(self, b: ir.IRBuilder, pointer: Value) -> Value:
        """Broadcast four bytes."""
        return b.bitcast(vector(b, _INTS, load(b, pointer, I32)), _BYTES)

    def load_weights(self, b: ir.IRBuilder, pointer: Value) -> Any:
        """Load 16 bytes."""
        return load(b, pointer, _BYTES)

    def multiply_round(self, b: ir.IRBuilder, accumulators: Value, multipliers: Value) -> Value:
        """Multiply as float32, then ``fcvtns``."""
        product = b.fmul(b.sitofp(accumulators, ir.VectorType(F32, _LANES)), multipliers)
        return call(b, "llvm.aarch64.neon.fcvtns.v4i32.v4f32", _INTS, [product])

    def narrow(self, b: ir.IRBuilder, four: Sequence[Value], zero_point: Value | None) -> Value:
        """Saturate to 16 bits (``sqxtn``), add, saturate to unsigned bytes (``sqxtun``)."""
        halves = [call(b, "llvm.aarch64.neon.sqxtn.v4i16", ir.VectorType(I16, 4), [values]) for values in four]
        shorts = [_joined(b, halves[:2]), _joined(b, halves[2:])]
        if zero_point is not None:
            zero_points = vector(b, _SHORTS, zero_point)
            shorts = [call(b, "llvm.sadd.sat.v8i16", _SHORTS, [values, zero_points]) for values in shorts]
        return _joined(b, [call(b, "llvm.aarch64.neon.sqxtun.v8i8", _HALF, [values]) for values in shorts])

    def store_some(self, b: ir.IRBuilder, values: Value, pointer: Value, count: Value) -> None:
        """By way of the stack: there are no masks."""
        store_by_stack(b, values, pointer, count)


class ArmMixedDot(_Arm):
    """With the extension i8mm: ``usdot`` multiplies unsigned codes by signed weights."""

    def dot(self, b: ir.IRBuilder, accumulators: Value, elements: Value, weights: Value) -> Value:
        """Emit ``usdot``."""
        return call(b, "llvm.aarch64.neon.usdot.v4i32.v16i8", _INTS, [accumulators, elements, weights])


class ArmDot(_Arm):
    """With dotprod alone: ``sdot`` of codes less 128, and 128 times the weights' sum beside it."""

    def load_input(self, b: ir.IRBuilder, pointer: Value) -> Value:
        """Broadcast four bytes, less 128."""
        return b.xor(super().load_input(b, pointer), splat(_BYTES, 128))

    def load_weights(self, b: ir.IRBuilder, pointer: Value) -> tuple[Value, Value]:
        """Load 16 bytes; with them 128 times the sums of four, as 64 times those twice: 128 is no signed byte."""
        weights = super().load_weights(b, pointer)
        sums = splat(_INTS, 0)
        for _ in range(2):
            sums = self._sdot(b, sums, splat(_BYTES, 64), weights)
        return weights, sums

    def dot(self, b: ir.IRBuilder, accumulators: Value, elements: Value, weights: Value) -> Value:
        """Emit ``sdot`` and an addition."""
        return self._sdot(b, b.add(accumulators, weights[1]), elements, weights[0])

    def _sdot(self, b: ir.IRBuilder, accumulators: Value, elements: Value, weights: Value) -> Value:
        return call(b, "llvm.aarch64.neon.sdot.v4i32.v16i8", _INTS, [accumulators, elements, weights])


def _joined(b: ir.IRBuilder, pair: Sequence[Value]) -> Value:
    count = 2 * pair[0].type.count
    return b.shuffle_vector(pair[0], pair[1], ir.Constant(ir.VectorType(I32, count), list(range(count))))
