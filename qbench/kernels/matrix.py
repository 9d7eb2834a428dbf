"""Convolutions and dense layers by products of whole matrices, where the processor has them (AMX).

What the windows of 32 output pixels see is brought side by side, unless it lies so already: a row of codes for each
pixel, all taps one after the other. It is multiplied with one panel of weights after the other.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from qbench.kernels.epilogue import Epilogue, Output
from qbench.kernels.isa import ISAS
from qbench.kernels.isa.amx import BYTES, ROWS, configure, release, store, sum_products
from qbench.kernels.isa.emit import I8, I64, at, load, pointer
from qbench.kernels.isa.emit import store as store_vector
from qbench.kernels.jit import intrinsic, register_jitable, types
from qbench.kernels.kernel import KernelFunction
from qbench.kernels.levels import Level
from qbench.kernels.memory import address_of, view
from qbench.kernels.pack import pack_weights
from qbench.kernels.panels import shares
from qbench.kernels.rows import loop
from qbench.kernels.split import at as place_at
from qbench.kernels.stack import stack
from qbench.kernels.tile import Tile

MATRIX = Tile(2 * ROWS, 2)
"""The tile of all these kernels."""

_ROWS = MATRIX.rows
_ISA = ISAS[Level.AVX512VNNI]
_GROUP = 4
_SIDE_BY_SIDE = 5 << 16
"""Bytes of a thread's stack for what windows see."""

_PART = 8
"""Rows whose sums are rescaled together: as many as vector registers hold."""

_BYTES_OF_SUMS = 4 * MATRIX.rows * MATRIX.vectors * _ISA.lanes

_MOST_BLOCKS = 16


@register_jitable
def steps_of(depth: Any) -> Any:
    """Steps that so many products per output take."""
    return -(-depth // BYTES)


@register_jitable
def pitch_of(depth: Any) -> Any:
    """Bytes from row to row of what is brought side by side: an odd number of cache lines, with one to write beyond."""
    lines = steps_of(depth) + 1
    return (lines + 1 - lines % 2) * BYTES


def blocks_at_once(depth: int) -> int:
    """For how many blocks of pixels one panel of weights is used before the next; 0: not even one fits.

    Parameters
    ----------
    depth
        Products per output.
    """
    return min(_SIDE_BY_SIDE // (MATRIX.rows * pitch_of(depth)), _MOST_BLOCKS)


def pack_matrix(weights: NDArray[np.int8]) -> NDArray[np.int8]:
    """Weights ``[groups, channels, taps, depth]`` as kernels read them: ``[groups, panels, steps, 16, 32, 4]``."""
    groups, channels, taps, depth = weights.shape
    filled = np.zeros((groups, channels, 1, steps_of(taps * depth) * BYTES), np.int8)
    filled[:, :, 0, : taps * depth] = weights.reshape(groups, channels, -1)
    return pack_weights(filled, MATRIX, _ISA.lanes, _GROUP)


def make_matrix_tile(epilogue: Epilogue) -> Any:
    """A Numba function that computes one tile of output; all its arguments are 64-bit integers.

    ``tile(x, x_pitch, steps, parts, weights, bias, sums, out, pitch, rows, channels, operands)``

    x, x_pitch
        Address of the first of 32 rows of codes, and the bytes from row to row.
    steps, parts, weights, bias
        See `qbench.kernels.isa.amx.sum_products`; addresses.
    sums
        Address of 4 bytes for each of the accumulators.
    out, pitch, rows, channels, operands
        As for `qbench.kernels.tile.make_tile`.
    """

    @intrinsic
    def tile(context, x, x_pitch, steps, parts, weights, bias, sums, out, pitch, rows, channels, operands):
        def generate(context, b, signature, arguments):
            x, x_pitch, steps, parts, weights, bias, sums, out, pitch, rows, channels, packed = arguments
            place, start = pointer(b, sums), pointer(b, out)
            line = BYTES * MATRIX.vectors
            made = sum_products(b, pointer(b, x), x_pitch, pointer(b, weights), steps, parts, pointer(b, bias))
            for i, registers in enumerate(made):
                for v, register in enumerate(registers):
                    store(b, register, at(b, place, i * ROWS * line + v * BYTES), line)
            unpacked = [b.extract_value(packed, i) for i in range(len(operands))]
            with loop(b, rows, _PART) as first:
                here = at(b, place, b.mul(first, I64(line)))
                part = [
                    [load(b, here, _ISA.accumulator, r * line + v * BYTES) for v in range(MATRIX.vectors)]
                    for r in range(_PART)
                ]
                target = Output(at(b, start, b.mul(first, pitch)), pitch, b.sub(rows, first), channels)
                epilogue.emit(b, _ISA, part, unpacked, target)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 11, operands), generate

    return tile


@intrinsic
def _copy(context, source, target, count):
    """Copy `count` bytes, at least one, in whole cache lines: up to 63 more are read and written."""

    def generate(context, b, signature, arguments):
        source, target, count = arguments
        with loop(b, count, BYTES) as start:
            line = load(b, pointer(b, source), ir.VectorType(I8, BYTES), start)
            store_vector(b, line, pointer(b, target), start)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@register_jitable
def _bring(args, bases, x, block, target, pitch):
    """What the windows of a block's pixels see, side by side; behind the last pixel it is repeated."""
    zeros = address_of(bases, args.zeros)
    if args.table == 0:
        for r in range(_ROWS):
            pixel = min(block * _ROWS + r, args.pixels - 1)
            _copy(x + pixel * args.pitch, target + r * pitch, args.depth)
        return
    offsets = view(bases, args.table + block * args.taps * _ROWS * 4, args.taps * _ROWS, np.int32)
    for tap in range(args.taps):
        for r in range(_ROWS):
            offset = np.int64(offsets[place_at(tap * _ROWS + r)])
            _copy(zeros if offset < 0 else x + offset, target + r * pitch + tap * args.depth, args.depth)


def by_matrices(size: int, run_tile: Callable[..., None]) -> KernelFunction:
    """A kernel that walks tiles of matrices; its arguments are those of `qbench.kernels.conv`.

    A step is 64 codes; `run_steps` counts those of all parts of the weights, and `part_steps` those of one.

    Parameters
    ----------
    size
        Bytes of a result.
    run_tile
        Takes args, bases, the address of the rows of codes, the bytes between them, the address of the weights, the
        number of the first channel, the address for the sums, that of the result, and how many pixels and channels
        there are.
    """
    rows, width, room, room_of_sums = _ROWS, MATRIX.vectors * _ISA.lanes, _SIDE_BY_SIDE, _BYTES_OF_SUMS

    def conv(args: Any, bases: Any, thread: int, threads: int) -> None:
        first_x, weights, out = address_of(bases, args.x), address_of(bases, args.weights), address_of(bases, args.out)
        brought, sums = stack(room), stack(room_of_sums)
        depth = args.taps * args.depth
        pitch, side_by_side = pitch_of(depth), args.table == 0 and depth % BYTES == 0
        blocks, panels = -(-args.pixels // rows), -(-args.channels // width)
        first_block, last_block, first_panel, last_panel = shares(blocks, panels, thread, threads)
        configure()
        for group in range(args.groups):
            x = first_x + group * args.group_pitch
            for chunk in range(first_block, last_block, args.chunk):
                end = min(chunk + args.chunk, last_block)
                for block in range(chunk, end):
                    if not (side_by_side and (block + 1) * rows <= args.pixels):
                        _bring(args, bases, x, block, brought + (block - chunk) * rows * pitch, pitch)
                for panel in range(first_panel, last_panel):
                    number = group * panels + panel
                    panel_weights = weights + number * args.run_steps * BYTES * width
                    channels = min(args.channels - panel * width, width)
                    for block in range(chunk, end):
                        pixel = block * rows
                        here = min(args.pixels - pixel, rows)
                        source, apart = brought + (block - chunk) * rows * pitch, pitch
                        if side_by_side and here == rows:
                            source, apart = x + pixel * args.pitch, args.pitch
                        target = out + (pixel * args.out_pitch + group * args.group_out + panel * width) * size
                        run_tile(
                            args, bases, source, apart, panel_weights, number * width, sums, target, here, channels
                        )
        release()

    return conv
