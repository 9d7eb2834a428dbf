"""Vectors of float32, as LLVM has them on every target: how many lanes each level has, and what tiles emit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from qbench.kernels.isa.emit import F32, I32, at, call, load, store, vector
from qbench.kernels.levels import Level

__all__ = ["VECTORS", "Vectors"]


@dataclass(frozen=True)
class Vectors:
    """The float32 vectors of a level.

    Parameters
    ----------
    lanes
        Elements of a vector.
    """

    lanes: int

    @property
    def kind(self) -> ir.VectorType:
        """The type of one vector."""
        return ir.VectorType(F32, self.lanes)

    def load(self, b: ir.IRBuilder, place: Any, offset: Any = 0) -> Any:
        """A vector at a byte pointer plus an offset in bytes."""
        return load(b, place, self.kind, offset)

    def broadcast(self, b: ir.IRBuilder, place: Any) -> Any:
        """One float at a byte pointer, in all lanes."""
        return vector(b, self.kind, load(b, place, F32))

    def fma(self, b: ir.IRBuilder, x: Any, y: Any, z: Any) -> Any:
        """``x * y + z``, rounded once."""
        return call(b, f"llvm.fma.v{self.lanes}f32", self.kind, [x, y, z])

    def clamp(self, b: ir.IRBuilder, x: Any, low: Any, high: Any) -> Any:
        """``min(max(x, low), high)``, NaN where x is."""
        x = b.select(b.fcmp_ordered("<", x, low), low, x)
        return b.select(b.fcmp_ordered(">", x, high), high, x)

    def store_some(self, b: ir.IRBuilder, values: Any, place: Any, count: Any) -> None:
        """Store the first `count` lanes (i64; none where it is negative), and touch nothing behind them."""
        whole = b.icmp_signed(">=", count, ir.Constant(count.type, self.lanes))
        with b.if_else(whole, likely=True) as (all_lanes, some):
            with all_lanes:
                store(b, values, place)
            with some:
                index = ir.VectorType(I32, self.lanes)
                limit = vector(b, index, b.trunc(count, I32))
                mask = b.icmp_signed("<", ir.Constant(index, list(range(self.lanes))), limit)
                target = b.bitcast(at(b, place, 0), self.kind.as_pointer())
                call(b, f"llvm.masked.store.v{self.lanes}f32.p0", ir.VoidType(), [values, target, I32(1), mask])


VECTORS: dict[Level, Vectors] = {
    Level.AVX512VNNI: Vectors(16),
    Level.AVXVNNI: Vectors(8),
    Level.AVX2: Vectors(8),
}
"""By level; the portable level is plain loops."""
