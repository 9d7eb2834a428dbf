"""Inner loops of depthwise convolution in vector code: one block of channels along one or more rows of output.

A block's constants lie together, each vector in woven order (see `Lanes`): the biases, those of the epilogue, the
weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from llvmlite import ir

from qbench.kernels.depthwise_sweep import Sweep
from qbench.kernels.epilogue import EpilogueName
from qbench.kernels.isa.emit import I8, I16, I64, at, call, load, pointer, splat, store, vector
from qbench.kernels.isa.lanes import Lanes
from qbench.kernels.jit import intrinsic, types
from qbench.kernels.rescale import RESCALES

Value = Any

_BIAS = 1
"""Groups of vectors before the constants of the epilogue."""


@dataclass(frozen=True)
class DepthwiseTile:
    """What the two loops have in common: a kind of register and a kind of epilogue."""

    lanes: Lanes
    kind: EpilogueName
    batch: int = 4
    """Groups of taps that are loaded before they are multiplied: each vector of weights is loaded once for all."""

    @property
    def groups(self) -> int:
        """Groups of vectors before the weights: the bias, then what `Rescale.pack` gives."""
        return _BIAS + (0 if self.kind == "exact" else RESCALES[self.kind].constants)

    def constant(self, b: ir.IRBuilder, block: Value, group: int, q: int) -> Value:
        """Woven vector `q` of a group of a block's constants."""
        return load(b, block, self.lanes.ints, (self.lanes.taps * group + q) * self.lanes.width)

    def weights(self, b: ir.IRBuilder, block: Value, pattern: Any, q: int) -> list[Value]:
        """Woven vector `q` of a pattern's weights, in the form that `Lanes.dot` takes; `pattern` is an int or i64."""
        lanes = self.lanes
        before, each = lanes.taps * self.groups * lanes.width, lanes.weight_vectors * lanes.width
        size = lanes.taps * each
        offset = size * pattern if isinstance(pattern, int) else b.mul(pattern, I64(size))
        start = at(b, at(b, block, before), offset)
        return [load(b, start, lanes.ints, q * each + i * lanes.width) for i in range(lanes.weight_vectors)]

    def rescale(self, b: ir.IRBuilder, block: Value, q: int, sums: Sequence[Value]) -> list[Value]:
        """Woven vectors `q` of several outputs, times the multipliers."""
        form = RESCALES[self.kind]
        constants = [self.constant(b, block, _BIAS + i, q) for i in range(form.constants)]
        if not form.halves:
            return [form.emit(b, self.lanes, x, constants) for x in sums]
        # Only registers of 64 bytes have instructions that round down: narrower ones are joined.
        wide, each = Lanes(self.lanes.level, 64), 64 // self.lanes.width
        constants = [wide.joined(b, [constant] * each) for constant in constants]
        results: list[Value] = []
        for i in range(0, len(sums), each):
            parts = [sums[min(i + j, len(sums) - 1)] for j in range(each)]
            results += wide.parts(b, form.emit(b, wide, wide.joined(b, parts), constants), each)
        return results[: len(sums)]

    def words(self, b: ir.IRBuilder, pair: Sequence[Value], ends: Ends) -> Value:
        """Rescaled woven vectors 0 and 1, or 2 and 3, as int16 with the zero point."""
        form = RESCALES[self.kind]
        words = self.lanes.words(b, pair)
        if not form.adds_zero_point:
            words = call(b, f"llvm.sadd.sat.v{words.type.count}i16", words.type, [words, ends.zero_point])
        return b.ashr(words, splat(words.type, 1)) if form.halves else words

    def store(self, b: ir.IRBuilder, codes: Value, out: Value, ends: Ends) -> None:
        """Store as many codes as the block has channels."""
        self.lanes.store_some(b, codes, out, ends.count) if self.lanes.channels == 16 else store(b, codes, out)

    def store_sums(self, b: ir.IRBuilder, half: int, pair: Sequence[Value], out: Value) -> None:
        """Store woven vectors 0 and 1, or 2 and 3, as they are."""
        for q, value in enumerate(pair):
            store(b, value, out, (2 * half + q) * self.lanes.width)


class Ends:
    """Zero point, clamps and the number of channels to store, as vectors."""

    def __init__(self, b: ir.IRBuilder, tile: DepthwiseTile, zero_point: Value, low: Value, high: Value, count: Value):
        lanes = tile.lanes
        if tile.kind != "exact" and RESCALES[tile.kind].halves:
            zero_point = b.add(b.shl(zero_point, I64(1)), I64(1))
        self.zero_point = vector(b, lanes.shorts, b.trunc(zero_point, I16))
        self.low, self.high = (vector(b, lanes.codes, b.trunc(bound, I8)) for bound in (low, high))
        self.count = count


def emit_loop(
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


def emit_slide(b: ir.IRBuilder, tile: DepthwiseTile, sweep: Sweep, rows: int, a: Sequence[Value]) -> None:
    """The code of `sweep_tile` for blocks of one column: each column of input goes to all outputs that are open."""
    lanes, stride = tile.lanes, sweep.strides[1]
    places = [(y, q) for y in range(rows) for q in range(lanes.taps)]
    lines, steps, zeros, first, columns, outputs, _, _, block, out, pitch, apart, *ends = a
    ends = Ends(b, tile, *ends)
    lines, steps, zeros, block, out = (pointer(b, address) for address in (lines, steps, zeros, block, out))
    depth = range(sweep.kernel[0] + (rows - 1) * sweep.strides[0])
    steps = [load(b, steps, I64, 8 * y) for y in depth]
    patterns = [{use.slot: use.pattern for use in sweep.uses(y)} for y in range(rows)]
    ages = -(-sweep.kernel[1] // stride)  # steps in which an output is open
    state_size = (ages - 1) * len(places)

    def body(index: Value, state: list[Value]) -> list[Value]:
        lines, out, sums = state[: len(depth)], state[len(depth)], state[len(depth) + 1 :]
        sums = [*(tile.constant(b, block, 0, q) for _, q in places), *sums]
        for u in range(stride):
            inside = b.icmp_unsigned("<", b.add(first, b.add(b.mul(index, I64(stride)), I64(u))), columns)
            data = [load(b, b.select(inside, line, zeros), lanes.codes) for line in lines]
            lines = [at(b, line, step) for line, step in zip(lines, steps, strict=True)]
            for g, pixels in enumerate(sweep.group):
                vectors = lanes.weave(b, [data[y] for y, _ in pixels if y < len(data)])
                for age in range(ages):
                    for i, (y, q) in enumerate(places):
                        pattern = patterns[y].get((age * stride + u) * len(sweep.group) + g)
                        if pattern is not None:
                            weights = tile.weights(b, block, pattern, q)
                            k = age * len(places) + i
                            sums[k] = lanes.dot(b, sums[k], vectors[q], weights)
        ready = b.icmp_signed(">=", index, I64(ages - 1))
        with b.if_then(ready, likely=True):
            done = dict(zip(places, sums[state_size:], strict=True))
            targets = [at(b, out, b.mul(apart, I64(y))) for y in range(rows)]
            woven = [[done[y, q] for q in range(lanes.taps)] for y in range(rows)]
            emit_end(b, tile, block, woven, targets, ends)
        return [*lines, b.select(ready, at(b, out, pitch), out), *sums[:state_size]]

    starts = [pointer(b, load(b, lines, I64, 8 * y)) for y in depth]
    empty = [ir.Constant(lanes.ints, None)] * state_size
    emit_loop(b, b.add(outputs, I64(ages - 1)), [*starts, out, *empty], body)


def emit_end(
    b: ir.IRBuilder,
    tile: DepthwiseTile,
    block: Value,
    sums: Sequence[Sequence[Value]],
    targets: Sequence[Value],
    ends: Ends,
) -> None:
    """Rescale and store the woven vectors of several outputs."""
    pairs = range(tile.lanes.pairs)
    if tile.kind == "exact":
        for woven, target in zip(sums, targets, strict=True):
            for i in pairs:
                tile.store_sums(b, i, woven[2 * i : 2 * i + 2], target)
        return
    scaled = [tile.rescale(b, block, q, [woven[q] for woven in sums]) for q in range(tile.lanes.taps)]
    results: list[Value] = []
    for woven in zip(*scaled, strict=True):
        words = [tile.words(b, woven[2 * i : 2 * i + 2], ends) for i in pairs]
        results.append(tile.lanes.bytes(b, words, ends.low, ends.high))
    for codes, target in zip(results, targets, strict=True):
        tile.store(b, codes, target, ends)


def emit_sweep(b: ir.IRBuilder, tile: DepthwiseTile, sweep: Sweep, a: Sequence[Value]) -> None:
    """The code of `sweep_tile`."""
    emit = emit_slide if sweep.columns == 1 else emit_blocks
    if sweep.rows == 1:
        emit(b, tile, sweep, 1, a)
        return
    with b.if_else(b.icmp_signed(">=", a[6], I64(sweep.rows)), likely=True) as (all_rows, one_row):
        with all_rows:
            emit(b, tile, sweep, sweep.rows, a)
        with one_row:
            emit(b, tile, sweep, 1, a)


def emit_blocks(b: ir.IRBuilder, tile: DepthwiseTile, sweep: Sweep, rows: int, a: Sequence[Value]) -> None:
    """The code of `sweep_tile` for larger blocks: weave the input rows into scratch memory, then multiply."""
    lines, steps, zeros, first, columns, outputs, _, scratch, block, out, pitch, apart, *ends = a
    zeros, scratch, block, out = (pointer(b, address) for address in (zeros, scratch, block, out))
    blocks = b.sdiv(b.add(outputs, I64(sweep.columns - 1)), I64(sweep.columns))
    last = b.mul(b.sub(b.mul(blocks, I64(sweep.columns)), I64(1)), I64(sweep.strides[1]))
    across = sweep.group_columns
    groups = b.sdiv(b.add(last, I64(sweep.kernel[1] + across - 1)), I64(across))
    _emit_weaving(b, tile, sweep, pointer(b, lines), pointer(b, steps), zeros, first, columns, groups, scratch)
    words = at(b, scratch, b.mul(groups, I64(len(sweep.group) * tile.lanes.taps * tile.lanes.width)))
    place = _Place(scratch, words, block, out, pitch, apart, outputs, Ends(b, tile, *ends))
    _emit_products(b, tile, sweep, rows, place, blocks)


def _emit_weaving(
    b: ir.IRBuilder, tile: DepthwiseTile, sweep: Sweep, lines: Value, steps: Value, zeros: Value, first: Value,
    columns: Value, groups: Value, scratch: Value,
) -> None:  # fmt: skip
    """A loop over groups of columns: load, weave, store."""
    lanes, depth = tile.lanes, range(sweep.input_rows)
    steps = [load(b, steps, I64, 8 * y) for y in depth]

    def body(index: Value, lines: list[Value]) -> list[Value]:
        column = b.add(first, b.mul(index, I64(sweep.group_columns)))
        pixels: dict[tuple[int, int], Value] = {}
        for x in range(sweep.group_columns):
            inside = b.icmp_unsigned("<", b.add(column, I64(x)), columns)
            for y in depth:
                pixels[y, x] = load(b, b.select(inside, lines[y], zeros), lanes.codes)
                lines[y] = at(b, lines[y], steps[y])
        target = at(b, scratch, b.mul(index, I64(len(sweep.group) * lanes.taps * lanes.width)))
        for i, together in enumerate(sweep.group):
            for q, value in enumerate(lanes.weave(b, [pixels[pixel] for pixel in together])):
                store(b, value, target, (lanes.taps * i + q) * lanes.width)
        return lines

    emit_loop(b, groups, [pointer(b, load(b, lines, I64, 8 * y)) for y in depth], body)


@dataclass(frozen=True)
class _Place:
    """Where products come from and go (values of LLVM IR)."""

    woven: Any
    words: Any
    """Memory for what the first pair of woven vectors gives, until the second is done."""
    block: Any
    out: Any
    pitch: Any
    apart: Any
    outputs: Any
    ends: Ends


def _emit_products(b: ir.IRBuilder, tile: DepthwiseTile, sweep: Sweep, rows: int, p: _Place, blocks: Value) -> None:
    """One loop over blocks of outputs for each pair of woven vectors: more do not fit into registers."""
    lanes, places = tile.lanes, [(y, x) for y in range(rows) for x in range(sweep.columns)]
    width = lanes.width

    def body(half: int, index: Value) -> None:
        woven = at(b, p.woven, b.mul(index, I64(sweep.step * len(sweep.group) * lanes.taps * width)))
        here = b.mul(index, I64(sweep.columns))
        left = b.sub(p.outputs, here)
        out = at(b, p.out, b.mul(here, p.pitch))
        sums = _emit_dots(b, tile, sweep, rows, half, woven, p.block)

        def target(y: int, x: int) -> Value:
            return at(b, out, b.add(b.mul(p.pitch, I64(x)), b.mul(p.apart, I64(y))))

        if tile.kind == "exact":
            _each(
                b,
                left,
                sweep.columns,
                lambda x: [tile.store_sums(b, half, sums[y, x], target(y, x)) for y in range(rows)],
            )
            return
        scaled = [tile.rescale(b, p.block, 2 * half + q, [sums[place][q] for place in places]) for q in (0, 1)]
        results = [tile.words(b, pair, p.ends) for pair in zip(*scaled, strict=True)]
        words = at(b, p.words, b.mul(index, I64(len(places) * width)))
        if half + 1 < lanes.pairs:
            for i, result in enumerate(results):
                store(b, result, words, i * width)
            return
        before = [[load(b, words, lanes.shorts, i * width)] if half else [] for i in range(len(places))]
        parts = zip(places, before, results, strict=True)
        codes = {place: lanes.bytes(b, [*first, last], p.ends.low, p.ends.high) for place, first, last in parts}
        _each(b, left, sweep.columns, lambda x: [tile.store(b, codes[y, x], target(y, x), p.ends) for y in range(rows)])

    for half in range(lanes.pairs):
        emit_loop(b, blocks, [], lambda index, state, half=half: body(half, index) or [])


def _emit_dots(
    b: ir.IRBuilder, tile: DepthwiseTile, sweep: Sweep, rows: int, half: int, woven: Value, block: Value
) -> dict[tuple[int, int], list[Value]]:
    """Sums of products of a block of outputs (row, column): woven vectors 0 and 1, or 2 and 3."""
    lanes, vectors = tile.lanes, (2 * half, 2 * half + 1)
    sums = {(y, x): [tile.constant(b, block, 0, q) for q in vectors] for y in range(rows) for x in range(sweep.columns)}
    uses = [(row, use) for row in range(rows) for use in sweep.uses(row)]
    slots = sorted({use.slot for _, use in uses})
    for i in range(0, len(slots), tile.batch):
        if i:
            _keep_order(b)
        batch = slots[i : i + tile.batch]
        data = {
            slot: [load(b, woven, lanes.ints, (lanes.taps * slot + q) * lanes.width) for q in vectors] for slot in batch
        }
        mine = [(row, use) for row, use in uses if use.slot in data]
        for row, pattern in sorted({(row, use.pattern) for row, use in mine}):
            for i, q in enumerate(vectors):
                weights = tile.weights(b, block, pattern, q)
                for _, use in mine:
                    if (row, pattern) == (_, use.pattern):
                        pair = sums[row, use.column]
                        pair[i] = lanes.dot(b, pair[i], data[use.slot][i], weights)
    return sums


def _keep_order(b: ir.IRBuilder) -> None:
    """No load of what follows is moved before this: else all are done at once, and registers run out."""
    b.asm(ir.FunctionType(ir.VoidType(), []), "", "~{memory}", [], side_effect=True)


def _each(b: ir.IRBuilder, count: Value, most: int, emit: Callable[[int], Any]) -> None:
    """``for i in range(min(count, most)): emit(i)``, unrolled; mostly it is all of them."""
    with b.if_else(b.icmp_signed(">=", count, I64(most)), likely=True) as (whole, part):
        with whole:
            for i in range(most):
                emit(i)
        with part:
            for i in range(most - 1):
                with b.if_then(b.icmp_signed(">", count, I64(i))):
                    emit(i)


@cache
def sweep_tile(tile: DepthwiseTile, sweep: Sweep) -> Any:
    """An intrinsic that makes up to `sweep.rows` rows of output, one block of channels.

    Arguments, all int64: address of the addresses of the input rows (at the first column that a window touches, which
    may lie in the padding); address of their steps from column to column; address of the zero points; first column
    (negative in padding) and number of columns; number of outputs in a row; `sweep.rows`, or less for a single row;
    address of scratch memory; address of the block; address of the first output, bytes from output to output and from
    row to row; zero point, low, high; channels to store.
    """

    @intrinsic
    def run(
        typing,
        lines,
        steps,
        zeros,
        first,
        columns,
        outputs,
        rows,
        scratch,
        block,
        out,
        pitch,
        apart,
        zero_point,
        low,
        high,
        count,
    ):
        def generate(context, b, signature, arguments):
            emit_sweep(b, tile, sweep, arguments)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 16), generate

    return run
