"""A tile of a window's results in registers: neighbouring pixels of one row times vectors of channels."""

import math
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from llvmlite import ir

from qbench.kernels.floats.vectors import Vectors
from qbench.kernels.isa.emit import I64, at, pointer, splat, vector
from qbench.kernels.jit import intrinsic, types

BLOCK = 32
"""Channels whose weights lie together: two vectors at most."""
_TAP = 4 * BLOCK

Taps = Literal["weigh", "add", "max"]
"""What becomes of the elements under a window: they are multiplied by weights and added, added, or compared."""


@dataclass(frozen=True)
class Known:
    """What is known of a window while its tile is made; its taps are neighbours.

    Parameters
    ----------
    columns
        Taps of a row.
    pace
        Pixels from one of the tile's windows to the next.
    left, right
        Taps by which the tile's first and last window stick out of the image.
    """

    columns: int
    pace: int
    left: int = 0
    right: int = 0


def window_tile(vectors: Vectors, taps: Taps, pixels: int, count: int, known: Known | None = None) -> Any:
    """A Numba function that computes `pixels` neighbours in `count` vectors of channels.

    ``tile(x, step, rows, down, columns, across, weights, row_taps, first, out, pitch, channels, low, high)``

    x, step
        Address of the first pixel's first tap; bytes to the next pixel's.
    rows, down, columns, across
        How many rows and columns of taps there are (0 where none lies in the image), and bytes between them.
    weights, row_taps, first
        Address of the first tap's weights; taps from one row of weights to the next; address of the sums' first
        values. Only for `taps` "weigh".
    out, pitch, channels
        Address of the first result; bytes from pixel to pixel; how many channels exist.
    low, high
        float32: bounds of the results; with `taps` "add" the sums are divided by `low`; not used by "max".

    Of a known window, `columns` and `step` are not looked at; what several pixels have under their windows is loaded
    once, and `x` is where the first tap would lie.
    """

    @intrinsic
    def tile(context, x, step, rows, down, columns, across, weights, row_taps, first, out, pitch, channels, low, high):
        def generate(context, b, signature, arguments):
            _emit(b, vectors, taps, pixels, count, known, *arguments)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 12, types.float32, types.float32), generate

    return tile


def _emit(
    b: ir.IRBuilder, vectors: Vectors, taps: Taps, pixels: int, count: int, known: Known | None,
    x: Any, step: Any, rows: Any, down: Any, columns: Any, across: Any, weights: Any, row_taps: Any,
    first: Any, out: Any, pitch: Any, channels: Any, low: Any, high: Any,
) -> None:  # fmt: skip
    size = 4 * vectors.lanes
    if taps == "weigh":
        start = [vectors.load(b, pointer(b, first), size * v) for v in range(count)] * pixels
    else:
        start = [splat(vectors.kind, -math.inf if taps == "max" else 0.0)] * (count * pixels)

    def known_row(known: Known, source: Any, packed: Any, sums: list[Any]) -> list[Any]:
        end = (pixels - 1) * known.pace + known.columns - known.right
        elements: dict[tuple[int, int], Any] = {}
        results = [*sums]
        for j, v in product(range(known.columns), range(count)):
            tap = at(b, pointer(b, packed), I64(j * _TAP))
            factor = vectors.load(b, tap, size * v) if taps == "weigh" else None
            for p in range(pixels):
                column, i = p * known.pace + j, p * count + v
                if known.left <= column < end:
                    if (column, v) not in elements:
                        pixel = at(b, pointer(b, source), b.mul(across, I64(column)))
                        elements[column, v] = vectors.load(b, pixel, size * v)
                    results[i] = _combined(b, vectors, taps, elements[column, v], factor, results[i])
        return results

    def each_row(i: Any, sums: list[Any]) -> list[Any]:
        source = b.add(x, b.mul(i, down))
        packed = b.add(weights, b.mul(i, b.mul(row_taps, I64(_TAP))))

        def each_tap(j: Any, sums: list[Any]) -> list[Any]:
            tap = pointer(b, b.add(packed, b.mul(j, I64(_TAP))))
            factors = [vectors.load(b, tap, size * v) if taps == "weigh" else None for v in range(count)]
            place = pointer(b, b.add(source, b.mul(j, across)))
            results: list[Any] = []
            for p in range(pixels):
                pixel = at(b, place, b.mul(step, I64(p)))
                for v, factor in enumerate(factors):
                    element = vectors.load(b, pixel, size * v)
                    results.append(_combined(b, vectors, taps, element, factor, sums[len(results)]))
            return results

        return _loop(b, columns, sums, each_tap) if known is None else known_row(known, source, packed, sums)

    sums = _loop(b, rows, start, each_row)
    lowest, highest = vector(b, vectors.kind, low), vector(b, vectors.kind, high)
    pieces: list[tuple[Any, Any, int]] = []
    for p in range(pixels):
        place = at(b, pointer(b, out), b.mul(pitch, I64(p)))
        for v in range(count):
            value = sums[p * count + v]
            if taps == "weigh":
                value = vectors.clamp(b, value, lowest, highest)
            elif taps == "add":
                value = b.fdiv(value, lowest)
            pieces.append((value, at(b, place, size * v), v * vectors.lanes))
    vectors.store(b, pieces, channels)


def _combined(b: ir.IRBuilder, vectors: Vectors, taps: Taps, element: Any, factor: Any, result: Any) -> Any:
    if taps == "weigh":
        return vectors.fma(b, element, factor, result)
    if taps == "add":
        return b.fadd(result, element)
    return b.select(b.fcmp_ordered(">", result, element), result, element)


def _loop(b: ir.IRBuilder, count: Any, values: list[Any], body: Any) -> list[Any]:
    """Emit ``for i in range(count): values = body(i, values)``."""
    before, inside, done = b.block, b.append_basic_block("loop"), b.append_basic_block("done")
    b.cbranch(b.icmp_signed("<", I64(0), count), inside, done)
    b.position_at_end(inside)
    index = b.phi(I64)
    phis = [b.phi(value.type) for value in values]
    results = body(index, phis)
    following, end = b.add(index, I64(1)), b.block
    b.cbranch(b.icmp_signed("<", following, count), inside, done)
    index.add_incoming(I64(0), before)
    index.add_incoming(following, end)
    b.position_at_end(done)
    merged = [b.phi(value.type) for value in values]
    for phi, out, value, result in zip(phis, merged, values, results, strict=True):
        phi.add_incoming(value, before)
        phi.add_incoming(result, end)
        out.add_incoming(value, before)
        out.add_incoming(result, end)
    return merged
