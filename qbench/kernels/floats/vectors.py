"""Vectors of float32, as LLVM has them on every target: how many lanes each level has, and what tiles emit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from qbench.kernels.isa.emit import F32, I32, I64, call, load, splat, store, vector
from qbench.kernels.levels import Level


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

    def load_some(self, b: ir.IRBuilder, place: Any, first: int, channels: Any) -> Any:
        """A vector at a byte pointer that starts at a channel, as far as channels (i64; None: all) exist."""
        if channels is None:
            return self.load(b, place)
        target = b.bitcast(place, self.kind.as_pointer())
        name = f"llvm.masked.load.v{self.lanes}f32.p0"
        return call(b, name, self.kind, [target, I32(1), self._exist(b, first, channels), splat(self.kind, 0.0)])

    def store_some(self, b: ir.IRBuilder, value: Any, place: Any, first: int, channels: Any) -> None:
        """Store a vector that starts at a channel at its byte pointer, as far as channels (i64; None: all) exist."""
        if channels is None:
            store(b, value, place)
            return
        target = b.bitcast(place, self.kind.as_pointer())
        name = f"llvm.masked.store.v{self.lanes}f32.p0"
        call(b, name, ir.VoidType(), [value, target, I32(1), self._exist(b, first, channels)])

    def _exist(self, b: ir.IRBuilder, first: int, channels: Any) -> Any:
        """The lanes of a vector that starts at a channel, of so many channels."""
        index = ir.VectorType(I32, self.lanes)
        limit = vector(b, index, b.trunc(b.sub(channels, I64(first)), I32))
        return b.icmp_signed("<", ir.Constant(index, list(range(self.lanes))), limit)

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

    def store(self, b: ir.IRBuilder, pieces: Sequence[tuple[Any, Any, int]], channels: Any) -> None:
        """Store vectors, each at its byte pointer and starting at a channel, as far as channels (i64) exist."""
        width = self.lanes + max(first for _, _, first in pieces)
        with b.if_else(b.icmp_signed(">=", channels, I64(width)), likely=True) as (whole, part):
            for branch, limit in ((whole, None), (part, channels)):
                with branch:
                    for value, place, first in pieces:
                        self.store_some(b, value, place, first, limit)


VECTORS: dict[Level, Vectors] = {
    Level.AVX512VNNI: Vectors(16),
    Level.AVXVNNI: Vectors(8),
    Level.AVX2: Vectors(8),
}
"""By level; the portable level is plain loops."""
