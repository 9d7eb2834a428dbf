"""The heart of convolutions and matrix products: a tile of accumulators that stays in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from qbench.kernels.epilogue import Epilogue, Output
from qbench.kernels.isa.base import Isa
from qbench.kernels.isa.emit import I32, I64, at, load, pointer

__all__ = ["Tile", "emit_tile", "make_tile"]


@dataclass(frozen=True)
class Tile:
    """The shape of a tile: output pixels times vectors of output channels."""

    rows: int
    vectors: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.vectors}"


def make_tile(isa: Isa, shape: Tile, epilogue: Epilogue) -> Any:
    """A Numba function that computes one tile of output; all its arguments are 64-bit integers.

    ``tile(x, zeros, offsets, taps, steps, weights, bias, out, pitch, rows, channels, operands)``

    x, zeros
        Addresses: what offsets count from, and what is read instead where an offset is negative.
    offsets
        Address of int32 ``[taps, shape.rows]``: for each tap, where each row's input starts.
    taps, steps
        How many taps there are, and how many groups of input elements each has; at least 1.
    weights
        Address of the packed weights ``[taps, steps, shape.vectors, lanes, group]`` (see `pack_weights`).
    bias
        Address of the accumulators' first values, one for each channel.
    out, pitch, rows, channels
        See `qbench.kernels.epilogue.Output`.
    operands
        Tuple of what the epilogue needs.
    """

    @intrinsic
    def tile(context, x, zeros, offsets, taps, steps, weights, bias, out, pitch, rows, channels, operands):
        def generate(context, b, signature, arguments):
            *numbers, packed = arguments
            emit_tile(b, isa, shape, epilogue, numbers, [b.extract_value(packed, i) for i in range(len(operands))])
            return context.get_dummy_value()

        return types.void(*[types.int64] * 11, operands), generate

    return tile


def emit_tile(
    b: ir.IRBuilder, isa: Isa, shape: Tile, epilogue: Epilogue, numbers: Sequence[Any], operands: Sequence[Any]
) -> None:
    """The code of a tile, for any target; `numbers` are all arguments of `make_tile`'s function but the last."""
    *places, out, pitch, rows, channels = numbers
    sums = _sum_products(b, isa, shape, *places)
    epilogue.emit(b, isa, sums, operands, Output(pointer(b, out), pitch, rows, channels))


def _sum_products(b, isa, shape, x, zeros, offsets, taps, steps, weights, bias) -> list[list[Any]]:
    """The loops over taps and steps: ``[row][vector]`` of accumulators."""
    places = [(r, v) for r in range(shape.rows) for v in range(shape.vectors)]
    start, zero_row, table = pointer(b, x), pointer(b, zeros), pointer(b, offsets)
    packed, first = pointer(b, weights), pointer(b, bias)
    columns = [load(b, first, isa.accumulator, v * 4 * isa.lanes) for v in range(shape.vectors)]
    before = b.block
    each_tap, each_step, next_tap, done = (b.append_basic_block(name) for name in ("tap", "step", "next_tap", "done"))
    b.branch(each_tap)

    b.position_at_end(each_tap)
    tap, tap_place = b.phi(I64), b.phi(packed.type)
    tap_sums = [b.phi(isa.accumulator) for _ in places]
    inputs = []
    for r in range(shape.rows):
        index = b.add(b.mul(tap, I64(4 * shape.rows)), I64(4 * r))
        offset = b.sext(load(b, table, I32, index), I64)
        inputs.append(b.select(b.icmp_signed("<", offset, I64(0)), zero_row, at(b, start, offset)))
    b.branch(each_step)

    b.position_at_end(each_step)
    step, place = b.phi(I64), b.phi(packed.type)
    sums = [b.phi(isa.accumulator) for _ in places]
    held = max(0, min(shape.vectors, isa.registers - 1 - len(places)))  # weights that have registers besides all sums
    step_weights = [isa.load_weights(b, at(b, place, v * isa.weight_bytes)) for v in range(held)]
    results = []
    for r in range(shape.rows):
        elements = isa.load_input(b, at(b, inputs[r], b.mul(step, I64(isa.step_bytes))))
        row = sums[r * shape.vectors : (r + 1) * shape.vectors]
        results += [isa.dot(b, total, elements, w) for total, w in zip(row, step_weights, strict=False)]
        results += [isa.dot_at(b, row[v], elements, place, v * isa.weight_bytes) for v in range(held, shape.vectors)]
    following, next_place = b.add(step, I64(1)), at(b, place, shape.vectors * isa.weight_bytes)
    b.cbranch(b.icmp_signed("<", following, steps), each_step, next_tap)

    b.position_at_end(next_tap)
    next_index = b.add(tap, I64(1))
    b.cbranch(b.icmp_signed("<", next_index, taps), each_tap, done)

    for phi, initial, again in [(tap, I64(0), next_index), (tap_place, packed, next_place)]:
        phi.add_incoming(initial, before)
        phi.add_incoming(again, next_tap)
    for phi, initial, again in [(step, I64(0), following), (place, tap_place, next_place)]:
        phi.add_incoming(initial, each_tap)
        phi.add_incoming(again, each_step)
    for (_, v), outer, inner, result in zip(places, tap_sums, sums, results, strict=True):
        outer.add_incoming(columns[v], before)
        outer.add_incoming(result, next_tap)
        inner.add_incoming(outer, each_tap)
        inner.add_incoming(result, each_step)
    b.position_at_end(done)
    return [results[r * shape.vectors : (r + 1) * shape.vectors] for r in range(shape.rows)]
