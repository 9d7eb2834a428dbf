"""Convolutions and matrix products of 8-bit codes: tiles over pixels and output channels.

A dense layer is a convolution of one tap over as many pixels as there are samples.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba.extending import register_jitable

from qbench.kernels.epilogue import Accumulators, Codes, Epilogue, EpilogueName
from qbench.kernels.isa import ISAS
from qbench.kernels.kernel import Kernel, KernelFunction, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import address_of, view
from qbench.kernels.pack import packing
from qbench.kernels.rescale import RESCALES
from qbench.kernels.rounding import rescale_one
from qbench.kernels.stack import stack, stack_array
from qbench.kernels.tile import Tile, make_tile

__all__ = ["ARGUMENTS", "conv_kernel"]

ARGUMENTS = record(
    x="i8",
    zeros="i8",
    table="i8",
    weights="i8",
    out="i8",
    bias="i8",
    mantissa="i8",
    shift="i8",
    multiplier="i8",
    scales="i8",
    pixels="i8",
    taps="i8",
    depth="i8",
    groups="i8",
    channels="i8",
    pitch="i8",
    out_pitch="i8",
    chunk="i8",
    rounding="i8",
    zero_point="i8",
    low="i8",
    high="i8",
)
"""Arguments of every kernel here.

x, zeros
    Input codes (u8), and `depth` zero points rounded up to 4, read where a window sticks out.
table
    From `pack.offsets`; 0 where there is one tap and the pixels lie `pitch` bytes apart.
weights, bias
    From `pack.pack_weights` and `pack.pack_channels`. The bias is int32; int64 for the epilogue ``exact``. The input's
    zero point is in it.
mantissa, shift, multiplier, scales
    The first three from `pack.pack_channels`, read by the epilogue ``exact`` and the portable kernels, as the rounding
    mode needs them; `scales` from `pack.pack_scales`, read by vector code.
out
    Codes (u8), or int32 for the epilogue ``accumulators``.
pixels, taps, depth
    Output pixels of all images; taps of the window; input channels of one group.
groups, channels
    Groups of the convolution, and output channels of each; a group's channels follow those of the one before it.
pitch, out_pitch
    Elements from pixel to pixel of input and output.
chunk
    Blocks of pixels (of as many as the tile has rows) for which one panel of weights is used before the next.
rounding, zero_point, low, high
    Index in ROUNDINGS, and zero point and clamp of the output, in codes.
"""


@cache
def conv_kernel(level: Level, tile: Tile, epilogue: EpilogueName) -> Kernel:
    """The kernel of one shape of tile."""
    function = _portable(tile, epilogue) if level == Level.PORTABLE else _tiled(level, tile, epilogue)
    return Kernel(f"conv.{level}.{tile}.{epilogue}", ARGUMENTS, function)


@register_jitable
def _share(count: int, thread: int, threads: int) -> tuple[int, int]:
    return count * thread // threads, count * (thread + 1) // threads


@register_jitable
def _shares(blocks: int, panels: int, thread: int, threads: int) -> tuple[int, int, int, int]:
    """A thread's blocks and panels: what splits more evenly is split, panels where both do alike."""
    wasted_blocks = -(-blocks // threads) * threads * panels
    wasted_panels = -(-panels // threads) * threads * blocks
    if wasted_panels <= wasted_blocks:
        first, last = _share(panels, thread, threads)
        return 0, blocks, first, last
    first, last = _share(blocks, thread, threads)
    return first, last, 0, panels


def _tiled(level: Level, shape: Tile, epilogue: EpilogueName) -> KernelFunction:
    isa = ISAS[level]
    rows, width, group = shape.rows, shape.vectors * isa.lanes, isa.group
    panel_bytes = shape.vectors * isa.weight_bytes
    size = 4 if epilogue == "accumulators" else 1
    offset_bytes = 4 * rows
    run_tile = _exact_tile(level, shape) if epilogue == "exact" else _vector_tile(level, shape, epilogue)

    def conv(args: Any, bases: Any, thread: int, threads: int) -> None:
        x, table, weights = address_of(bases, args.x), address_of(bases, args.table), address_of(bases, args.weights)
        zeros, out = address_of(bases, args.zeros), address_of(bases, args.out)
        line = stack(offset_bytes)
        line_of_offsets = view(bases, line, rows, np.int32)
        blocks, panels = -(-args.pixels // rows), -(-args.channels // width)
        steps = -(-args.depth // group)
        first_block, last_block, first_panel, last_panel = _shares(blocks, panels * args.groups, thread, threads)
        for chunk in range(first_block, last_block, args.chunk):
            for panel in range(first_panel, last_panel):
                in_group, first = panel // panels, panel % panels * width
                panel_weights = weights + panel * args.taps * steps * panel_bytes
                panel_out = out + (in_group * args.channels + first) * size
                channels = min(args.channels - first, width)
                for block in range(chunk, min(chunk + args.chunk, last_block)):
                    pixel = block * rows
                    here = min(args.pixels - pixel, rows)
                    source, offsets = x + in_group * args.depth, table + block * args.taps * offset_bytes
                    if args.table == 0:
                        source, offsets = source + pixel * args.pitch, line
                        for r in range(rows):
                            line_of_offsets[r] = min(r, here - 1) * args.pitch
                    target = panel_out + pixel * args.out_pitch * size
                    run_tile(
                        args, bases, source, zeros, offsets, steps, panel_weights, panel * width, target, here, channels
                    )

    return conv


def _vector_tile(level: Level, shape: Tile, epilogue: Any) -> Callable[..., None]:
    """A tile whose epilogue is vector code."""
    form: Epilogue = Accumulators() if epilogue == "accumulators" else Codes(epilogue)
    tile, size = make_tile(ISAS[level], shape, form), 4 if epilogue == "accumulators" else 1
    constants = RESCALES[epilogue].constants if epilogue in RESCALES else 0

    @register_jitable(inline="always")
    def run_tile(args, bases, source, zeros, offsets, steps, weights, channel, out, rows, channels):
        scales = address_of(bases, args.scales) + channel * 4 * constants
        operands = (scales, args.zero_point, args.low, args.high)
        bias = address_of(bases, args.bias) + channel * 4
        pitch = args.out_pitch * size
        tile(source, zeros, offsets, args.taps, steps, weights, bias, out, pitch, rows, channels, operands)

    return run_tile


def _exact_tile(level: Level, shape: Tile) -> Callable[..., None]:
    """A tile that sums products in vectors, and adds the bias and rescales one number after the other."""
    tile, width = make_tile(ISAS[level], shape, Accumulators()), shape.vectors * ISAS[level].lanes
    line_bytes, bytes_of_sums = 4 * width, 4 * width * shape.rows

    @register_jitable
    def run_tile(args, bases, source, zeros, offsets, steps, weights, channel, out, rows, channels):
        start = stack(line_bytes)
        view(bases, start, width, np.int32)[:] = 0
        place = stack(bytes_of_sums)
        tile(source, zeros, offsets, args.taps, steps, weights, start, place, line_bytes, rows, width, (0,))
        sums = view(bases, place, rows * width, np.int32)
        bias = view(bases, args.bias + channel * 8, channels, np.int64)
        for r in range(rows):
            _finish(args, bases, sums[r * width : r * width + channels], bias, channel, out + r * args.out_pitch)

    return run_tile


@register_jitable
def _finish(args: Any, bases: Any, sums: Any, bias: Any, channel: int, out: int) -> None:
    """Sums of products of one pixel, from a channel on, as codes at `out`."""
    count = len(sums)
    codes = view(bases, out, count, np.uint8)
    mantissa = view(bases, args.mantissa + channel * 4, count, np.int32)
    shift = view(bases, args.shift + channel * 4, count, np.int32)
    multiplier = view(bases, args.multiplier + channel * 4, count, np.float32)
    for i in range(count):
        scaled = rescale_one(np.int64(sums[i]) + bias[i], mantissa[i], shift[i], multiplier[i], args.rounding)
        codes[i] = min(max(scaled + args.zero_point, args.low), args.high)


def _portable(shape: Tile, epilogue: EpilogueName) -> KernelFunction:
    """The same in plain loops over arrays, one pixel after the other."""
    lanes, _ = packing(Level.PORTABLE)
    rows, width = shape.rows, shape.vectors * lanes
    keep_sums = epilogue == "accumulators"
    bias_type, bias_bytes = (np.int64, 8) if epilogue == "exact" else (np.int32, 4)

    def conv(args: Any, bases: Any, thread: int, threads: int) -> None:
        panels = -(-args.channels // width)
        sums = stack_array(width, np.int32)
        first_pixel, last_pixel, first_panel, last_panel = _shares(args.pixels, panels * args.groups, thread, threads)
        for pixel in range(first_pixel, last_pixel):
            block, row = pixel // rows, pixel % rows
            for panel in range(first_panel, last_panel):
                in_group, first = panel // panels, panel % panels * width
                count = min(args.channels - first, width)
                sums[:] = 0
                for tap in range(args.taps):
                    place = args.x + pixel * args.pitch + in_group * args.depth
                    if args.table != 0:
                        offset = view(bases, args.table + ((block * args.taps + tap) * rows + row) * 4, 1, np.int32)[0]
                        place = args.zeros if offset < 0 else args.x + offset + in_group * args.depth
                    weights = args.weights + (panel * args.taps + tap) * args.depth * width
                    _add_products(
                        sums,
                        view(bases, place, args.depth, np.uint8),
                        view(bases, weights, args.depth * width, np.int8).reshape(args.depth, width),
                    )
                channel = panel * width
                bias = view(bases, args.bias + channel * bias_bytes, count, bias_type)
                out = args.out + pixel * args.out_pitch + in_group * args.channels + first
                if keep_sums:
                    out += 3 * (out - args.out)
                    totals = view(bases, out, count, np.int32)
                    for c in range(count):
                        totals[c] = sums[c] + bias[c]
                else:
                    _finish(args, bases, sums[:count], bias, channel, out)

    return conv


@register_jitable
def _add_products(sums: Any, codes: Any, weights: Any) -> None:
    for k in range(len(codes)):
        code = np.int32(codes[k])
        for c in range(len(sums)):
            sums[c] += code * np.int32(weights[k, c])
