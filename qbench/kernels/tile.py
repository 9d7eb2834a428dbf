"""The heart of convolutions and matrix products: a tile of accumulators that stays in registers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from llvmlite import ir

from qbench.kernels.epilogue import Epilogue, Output
from qbench.kernels.isa.base import Isa
from qbench.kernels.isa.emit import I8, I16, I32, I64, at, load, pointer
from qbench.kernels.jit import intrinsic, types


@dataclass(frozen=True)
class Tile:
    """The shape of a tile: output pixels times vectors of output channels."""

    rows: int
    vectors: int

    def __str__(self) -> str:
        return f"{self.rows}x{self.vectors}"


def make_tile(isa: Isa, shape: Tile, epilogue: Epilogue, each: int = 0) -> Any:
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

    With `each`, the bytes of an input element, channels are not mixed: a depthwise convolution, by an instruction set
    for words. Its taps are pairs, each with two lines of offsets, and it has one step.
    """

    @intrinsic
    def tile(context, x, zeros, offsets, taps, steps, weights, bias, out, pitch, rows, channels, operands):
        def generate(context, b, signature, arguments):
            *numbers, packed = arguments
            unpacked = [b.extract_value(packed, i) for i in range(len(operands))]
            emit_tile(b, isa, shape, epilogue, numbers, unpacked, each)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 11, operands), generate

    return tile


def emit_tile(
    b: ir.IRBuilder, isa: Isa, shape: Tile, epilogue: Epilogue, numbers: Sequence[Any], operands: Sequence[Any],
    each: int = 0,
) -> None:  # fmt: skip
    """The code of a tile, for any target; `numbers` are all arguments of `make_tile`'s function but the last."""
    *places, out, pitch, rows, channels = numbers
    sums = _sum_each(b, isa, shape, each, *places) if each else _sum_products(b, isa, shape, *places)
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


def _sum_each(b, isa, shape, item, x, zeros, offsets, pairs, steps, weights, bias) -> list[list[Any]]:
    """The loop over pairs of taps: two elements of a channel are woven side by side, as `dot` takes them."""
    start, zero_row, table = pointer(b, x), pointer(b, zeros), pointer(b, offsets)
    packed, first = pointer(b, weights), pointer(b, bias)
    shorts = ir.VectorType(I16, 2 * isa.lanes)
    kind = shorts if item == 2 else ir.VectorType(I8, 2 * isa.lanes)
    before, each_pair, done = b.block, b.append_basic_block("pair"), b.append_basic_block("done")
    b.branch(each_pair)

    b.position_at_end(each_pair)
    pair, place = b.phi(I64), b.phi(packed.type)
    sums = [b.phi(isa.accumulator) for _ in range(shape.rows * shape.vectors)]
    results: list[Any] = []
    for r in range(shape.rows):
        taps: list[Any] = []
        for side in (0, shape.rows):
            index = b.add(b.mul(pair, I64(8 * shape.rows)), I64(4 * (side + r)))
            offset = b.sext(load(b, table, I32, index), I64)
            taps.append(b.select(b.icmp_signed("<", offset, I64(0)), zero_row, at(b, start, offset)))
        for v in range(0, shape.vectors, 2):
            loaded = [load(b, tap, kind, v * isa.lanes * item) for tap in taps]
            one, two = (b.zext(elements, shorts) for elements in loaded) if item == 1 else loaded
            for half in (0, 1):
                woven = b.bitcast(b.shuffle_vector(one, two, _woven(isa.lanes, half)), isa.accumulator)
                elements = isa.load_weights(b, at(b, place, (v + half) * isa.weight_bytes))
                results.append(isa.dot(b, sums[len(results)], woven, elements))
    following, next_place = b.add(pair, I64(1)), at(b, place, shape.vectors * isa.weight_bytes)
    b.cbranch(b.icmp_signed("<", following, pairs), each_pair, done)

    nothing = ir.Constant(isa.accumulator, None)
    phis = [(pair, I64(0), following), (place, packed, next_place)]
    for phi, initial, again in [*phis, *((phi, nothing, result) for phi, result in zip(sums, results, strict=True))]:
        phi.add_incoming(initial, before)
        phi.add_incoming(again, each_pair)
    b.position_at_end(done)
    totals: list[Any] = []
    for i in range(0, len(results), 2):
        for half in (0, 1):
            start_value = load(b, first, isa.accumulator, (i % shape.vectors + half) * 4 * isa.lanes)
            totals.append(b.add(b.shuffle_vector(*results[i : i + 2], _in_order(isa.lanes, half)), start_value))
    return [totals[r * shape.vectors : (r + 1) * shape.vectors] for r in range(shape.rows)]


def _woven(lanes: int, half: int) -> ir.Constant:
    """Which elements of two vectors of shorts are woven: those of the lower or upper half of every 128 bits."""
    firsts = [8 * (lane // 4) + 4 * half + lane % 4 for lane in range(lanes)]
    return ir.Constant(ir.VectorType(I32, 2 * lanes), [i + side for i in firsts for side in (0, 2 * lanes)])


def _in_order(lanes: int, half: int) -> ir.Constant:
    """What undoes this: which sums of both halves are those of the first, or the last, channels."""
    channels = range(half * lanes, (half + 1) * lanes)
    return ir.Constant(ir.VectorType(I32, lanes), [c % 8 // 4 * lanes + c // 8 * 4 + c % 4 for c in channels])
