"""Inner loops of depthwise convolution in vector code: one block of channels along one or more rows of output.

A block's constants lie together, each vector in woven order (see `Lanes`): four of biases, those of the epilogue, the
weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from qbench.kernels.epilogue import EpilogueName
from qbench.kernels.isa.emit import F32, I8, I16, I64, at, load, pointer, store, vector
from qbench.kernels.isa.lanes import Lanes

__all__ = ["CONSTANTS", "Sweep", "Tile", "spot_tile", "sweep_tile"]

Value = Any

CONSTANTS: dict[str, int] = {"float": 2, "fixed": 5, "fixed_left": 6, "exact": 1}
"""Groups of four vectors before the weights: bias; multiplier, or mantissa, its odd elements, half, right (, left)."""


@dataclass(frozen=True)
class Sweep:
    """A shape of kernel whose window slides along output rows."""

    kernel: tuple[int, int]
    strides: tuple[int, int]
    rows: int = 1
    """Output rows that are made together and so share what was loaded."""

    def __str__(self) -> str:
        return "x".join(map(str, (*self.kernel, *self.strides, self.rows)))

    @property
    def input_rows(self) -> int:
        """Rows of input that one call reads."""
        return self.kernel[0] + (self.rows - 1) * self.strides[0]

    @property
    def groups(self) -> int:
        """Sets of four input rows."""
        return -(-self.input_rows // 4)

    @property
    def open(self) -> int:
        """Outputs of a row that one column of input can count for."""
        return -(-self.kernel[1] // self.strides[1])


@dataclass(frozen=True)
class Tile:
    """What the two loops have in common: a kind of register and a kind of epilogue."""

    lanes: Lanes
    kind: EpilogueName

    @property
    def dot_bytes(self) -> int:
        """Size of the weights of four taps and one woven vector."""
        return self.lanes.weight_vectors * self.lanes.width

    def constants(self, b: ir.IRBuilder, block: Value, group: int, element: ir.Type | None = None) -> list[Value]:
        """Four vectors out of a block's constants."""
        kind = self.lanes.ints if element is None else ir.VectorType(element, self.lanes.ints.count)
        return [load(b, block, kind, (4 * group + q) * self.lanes.width) for q in range(4)]

    def weights(self, b: ir.IRBuilder, first: Value, index: int) -> list[Value]:
        """The weights of the dot product with an index, counted from a pointer to weights."""
        width = self.lanes.width
        return [
            load(b, first, self.lanes.ints, index * self.dot_bytes + i * width)
            for i in range(self.lanes.weight_vectors)
        ]

    def finish(self, b: ir.IRBuilder, block: Value, sums: Sequence[Value], out: Value, ends: Ends) -> None:
        """Rescale four woven vectors and store them as codes, or store them as they are for `exact`."""
        if self.kind == "exact":
            for q, value in enumerate(sums):
                store(b, value, out, q * self.lanes.width)
            return
        codes = self.lanes.narrow(b, self._rescaled(b, block, sums), ends.zero_point)
        codes = self.lanes.clamp(b, codes, ends.low, ends.high)
        self.lanes.store_some(b, codes, out, ends.count) if self.lanes.width == 16 else store(b, codes, out)

    def _rescaled(self, b: ir.IRBuilder, block: Value, sums: Sequence[Value]) -> list[Value]:
        if self.kind == "float":
            factors = self.constants(b, block, 1, F32)
            return [self.lanes.multiply_round(b, x, m) for x, m in zip(sums, factors, strict=True)]
        if self.kind == "fixed_left":
            sums = [b.shl(x, left) for x, left in zip(sums, self.constants(b, block, 5), strict=True)]
        parameters = zip(sums, *(self.constants(b, block, group) for group in (1, 2, 3, 4)), strict=True)
        return [
            b.ashr(b.add(self.lanes.high_product(b, x, even, odd), half), right)
            for x, even, odd, half, right in parameters
        ]


class Ends:
    """Zero point, clamps and the number of channels to store, as vectors."""

    def __init__(self, b: ir.IRBuilder, lanes: Lanes, zero_point: Value, low: Value, high: Value, count: Value) -> None:
        self.zero_point = vector(b, ir.VectorType(I16, lanes.width // 2), b.trunc(zero_point, I16))
        self.low, self.high = (vector(b, lanes.codes, b.trunc(bound, I8)) for bound in (low, high))
        self.count = count


def _loop(
    b: ir.IRBuilder, count: Value, state: Sequence[Value], body: Callable[[Value, list[Value]], Sequence[Value]]
) -> list[Value]:
    """Emit ``for index in range(count)`` (at least once) that carries a state; the state at the end."""
    before, start = b.block, b.append_basic_block("loop")
    b.branch(start)
    b.position_at_end(start)
    phis = [b.phi(value.type) for value in (I64(0), *state)]
    for phi, value in zip(phis, (I64(0), *state), strict=True):
        phi.add_incoming(value, before)
    after = [*body(phis[0], phis[1:])]
    following = b.add(phis[0], I64(1))
    for phi, value in zip(phis, (following, *after), strict=True):
        phi.add_incoming(value, b.block)
    end = b.append_basic_block("done")
    b.cbranch(b.icmp_signed("<", following, count), start, end)
    b.position_at_end(end)
    return after


@cache
def sweep_tile(tile: Tile, sweep: Sweep) -> Any:
    """An intrinsic that makes `sweep.rows` rows of output, one block of channels.

    Arguments, all int64: address of the addresses of the input rows (at the first column that a window touches, which
    may lie in the padding); address of their steps from column to column; address of the zero points; first column
    (negative in padding) and number of columns; number of outputs; address of the block; address of the first output,
    bytes from output to output and from row to row; zero point, low, high; channels to store.
    """
    lanes = tile.lanes
    depth, (_, kernel_x), stride = sweep.input_rows, sweep.kernel, sweep.strides[1]

    @intrinsic
    def run(typing, rows, steps, zeros, first, columns, outputs, block, out, pitch, row, zero_point, low, high, count):
        def generate(context, b, signature, a):
            rows, steps, zeros, first, columns, outputs, block, out, pitch, row, *ends = a
            ends = Ends(b, lanes, *ends)
            zeros, block, out = (pointer(b, address) for address in (zeros, block, out))
            kernels = at(b, block, 4 * CONSTANTS[tile.kind] * lanes.width)
            lines = [pointer(b, load(b, pointer(b, rows), I64, 8 * i)) for i in range(depth)]
            strides = [load(b, pointer(b, steps), I64, 8 * i) for i in range(depth)]
            one = sweep.rows * 4

            def step(index: Value, state: list[Value]) -> list[Value]:
                column, out, *state = state
                lines, sums = state[:depth], state[depth:]
                sums = [*tile.constants(b, block, 0) * sweep.rows, *sums]
                for u in range(stride):
                    if u < kernel_x:
                        inside = b.icmp_unsigned("<", column, columns)
                        data = [load(b, b.select(inside, line, zeros), lanes.codes) for line in lines]
                        woven = [lanes.weave(b, data[i : i + 4]) for i in range(0, depth, 4)]
                        for j in range(sweep.open):
                            if j * stride + u < kernel_x:
                                mine = slice(j * one, (j + 1) * one)
                                sums[mine] = add(sums[mine], woven, j * stride + u)
                    column = b.add(column, I64(1))
                    lines = [at(b, line, s) for line, s in zip(lines, strides, strict=True)]
                ready = b.icmp_signed(">=", index, I64(sweep.open - 1))
                with b.if_then(ready, likely=True):
                    for r in range(sweep.rows):
                        last = sums[(sweep.open - 1) * one + 4 * r :][:4]
                        tile.finish(b, block, last, at(b, out, b.mul(row, I64(r))), ends)
                out = b.select(ready, at(b, out, pitch), out)
                return [column, out, *lines, *sums[: (sweep.open - 1) * one]]

            def add(sums: list[Value], woven: list[list[Value]], x: int) -> list[Value]:
                sums = [*sums]
                for r in range(sweep.rows):
                    for g in range(sweep.groups):
                        if 4 * g < r * sweep.strides[0] + sweep.kernel[0] and 4 * g + 4 > r * sweep.strides[0]:
                            for q in range(4):
                                index = ((r * kernel_x + x) * sweep.groups + g) * 4 + q
                                taps = tile.weights(b, kernels, index)
                                sums[4 * r + q] = lanes.dot(b, sums[4 * r + q], woven[g][q], taps)
                return sums

            empty = [ir.Constant(lanes.ints, None)] * (one * (sweep.open - 1))
            _loop(b, b.add(outputs, I64(sweep.open - 1)), [first, out, *lines, *empty], step)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 14), generate

    return run


@cache
def spot_tile(tile: Tile) -> Any:
    """An intrinsic that makes one pixel of output, one block of channels, for any window.

    Arguments, all int64: address of the addresses of the taps, a multiple of four; how many fours; address of the
    block; address of the output; zero point, low, high; channels to store.
    """
    lanes = tile.lanes

    @intrinsic
    def run(typing, taps, fours, block, out, zero_point, low, high, count):
        def generate(context, b, signature, a):
            taps, fours, block, out, *ends = a
            ends = Ends(b, lanes, *ends)
            taps, block, out = (pointer(b, address) for address in (taps, block, out))

            def step(index: Value, state: list[Value]) -> list[Value]:
                taps, weights, *sums = state
                data = [load(b, pointer(b, load(b, taps, I64, 8 * i)), lanes.codes) for i in range(4)]
                woven = lanes.weave(b, data)
                sums = [lanes.dot(b, sums[q], woven[q], tile.weights(b, weights, q)) for q in range(4)]
                return [at(b, taps, 32), at(b, weights, 4 * tile.dot_bytes), *sums]

            weights = at(b, block, 4 * CONSTANTS[tile.kind] * lanes.width)
            sums = _loop(b, fours, [taps, weights, *tile.constants(b, block, 0)], step)[2:]
            tile.finish(b, block, sums, out, ends)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 8), generate

    return run
