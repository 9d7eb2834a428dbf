"""Convolutions and matrix products of float32: tiles over pixels and output channels.

A dense layer is a convolution of one tap over as many pixels as there are rows; a batched product has a group for each
matrix.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba.extending import register_jitable

from qbench.kernels.floats.tile import float_tile
from qbench.kernels.floats.vectors import VECTORS
from qbench.kernels.kernel import Kernel, KernelFunction, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import address_of, view
from qbench.kernels.split import share
from qbench.kernels.stack import stack, stack_array
from qbench.kernels.tile import Tile

__all__ = ["ARGUMENTS", "TILES", "choose_chunk", "choose_tile", "float_conv_kernel", "panel_lanes"]

_SIZES = (
    "x", "zeros", "table", "weights", "bias", "out", "pixels", "taps", "depth", "groups", "channels",
    "x_pitch", "x_group", "out_pitch", "out_group", "chunk",
)  # fmt: skip
ARGUMENTS = record(**dict.fromkeys(_SIZES, "i8"), low="f4", high="f4")
"""Arguments of every kernel here.

x, zeros
    Input, and `depth` zeros that are read where a window sticks out.
table
    From `pack.offsets`; 0 where there is one tap and the pixels lie `x_pitch` apart.
weights, bias
    From `pack.pack_weights` with a group of 1 and `pack.pack_channels`.
out
    Results, whose pixels lie `out_pitch` apart.
pixels, taps, depth
    Output pixels of all images; taps of the window; input elements of each.
groups, channels
    Groups, and output channels of each.
x_pitch, x_group, out_pitch, out_group
    Elements from pixel to pixel and from group to group of input and output.
chunk
    Blocks of pixels (of as many as the tile has rows) for which one panel of weights is used before the next.
low, high
    Bounds of the results.
"""

TILES: dict[Level, dict[Tile, float]] = {
    Level.AVX512VNNI: {
        Tile(6, 4): 1.0,
        Tile(4, 4): 1.02,
        Tile(8, 3): 1.02,
        Tile(10, 2): 1.02,
        Tile(14, 2): 1.03,
        Tile(14, 1): 1.04,
        Tile(1, 8): 2.2,
    },
    Level.AVXVNNI: {Tile(4, 3): 1.0, Tile(6, 2): 1.0, Tile(7, 1): 1.1, Tile(1, 8): 2.2},
    Level.AVX2: {Tile(4, 3): 1.0, Tile(6, 2): 1.0, Tile(7, 1): 1.1, Tile(1, 8): 2.2},
    Level.PORTABLE: {Tile(1, 4): 1.0, Tile(1, 1): 1.1},
}
"""By level, the tiles and the measured time that each needs for a product."""
_HALF_OF_L2 = 1 << 19
_PAGE = 4096
"""Rows of input that lie multiples of this apart share the lines of a few sets of the L1 cache."""


def panel_lanes(level: Level) -> int:
    """Channels in one vector of a level's tiles: `lanes` of `pack.pack_weights`."""
    return VECTORS[level].lanes if level in VECTORS else 16


def choose_tile(level: Level, pixels: int, channels: int, pitch: int) -> Tile:
    """The tile that spends least time.

    Parameters
    ----------
    level, pixels, channels
        What runs where: output pixels, and output channels of one group.
    pitch
        Input elements from pixel to pixel.
    """
    lanes = panel_lanes(level)

    def work(tile: Tile) -> float:
        blocks, panels = -(-pixels // tile.rows), -(-channels // (tile.vectors * lanes))
        shared = tile.rows > 10 and 4 * pitch % _PAGE == 0
        return blocks * panels * tile.rows * tile.vectors * TILES[level][tile] * (1.3 if shared else 1)

    return min(TILES[level], key=work)


def choose_chunk(tile: Tile, pixels: int, depth: int, weight_bytes: int) -> int:
    """Blocks of pixels for which one panel of weights is used before the next.

    Small weights stay in cache while pixels pass by once; large ones pass by once per chunk of pixels that stays.

    Parameters
    ----------
    tile, pixels
        What runs over how many pixels.
    depth
        Input elements that each pixel adds: of one tap.
    weight_bytes
        Of all packed weights.
    """
    if weight_bytes <= _HALF_OF_L2:
        return 1
    return max(1, min(-(-pixels // tile.rows), _HALF_OF_L2 // (4 * tile.rows * depth)))


@cache
def float_conv_kernel(level: Level, tile: Tile) -> Kernel:
    """The kernel of one shape of tile."""
    function = _portable(tile) if level == Level.PORTABLE else _tiled(level, tile)
    return Kernel(f"float.conv.{level}.{tile}", ARGUMENTS, function)


@register_jitable
def _shares(blocks: Any, panels: Any, thread: Any, threads: Any) -> Any:
    """A thread's blocks and panels: what splits more evenly is split, panels where both do alike."""
    if -(-panels // threads) * blocks <= -(-blocks // threads) * panels:
        first, last = share(panels, thread, threads)
        return 0, blocks, first, last
    first, last = share(blocks, thread, threads)
    return first, last, 0, panels


def _tiled(level: Level, shape: Tile) -> KernelFunction:
    vectors = VECTORS[level]
    tile, rows, width = float_tile(vectors, shape), shape.rows, shape.vectors * vectors.lanes
    offset_bytes = 4 * rows

    def conv(args: Any, bases: Any, thread: int, threads: int) -> None:
        x, table, weights = address_of(bases, args.x), address_of(bases, args.table), address_of(bases, args.weights)
        zeros, out, bias = address_of(bases, args.zeros), address_of(bases, args.out), address_of(bases, args.bias)
        line = stack(offset_bytes)
        line_of_offsets = view(bases, line, rows, np.int32)
        blocks, panels = -(-args.pixels // rows), -(-args.channels // width)
        first_block, last_block, first_panel, last_panel = _shares(blocks, panels * args.groups, thread, threads)
        for chunk in range(first_block, last_block, args.chunk):
            for panel in range(first_panel, last_panel):
                group, first = panel // panels, panel % panels * width
                panel_weights = weights + panel * args.taps * args.depth * width * 4
                for block in range(chunk, min(chunk + args.chunk, last_block)):
                    pixel = block * rows
                    here = min(args.pixels - pixel, rows)
                    source, offsets = x + group * args.x_group * 4, table + block * args.taps * offset_bytes
                    if args.table == 0:
                        source, offsets = source + pixel * args.x_pitch * 4, line
                        for r in range(rows):
                            line_of_offsets[r] = min(r, here - 1) * args.x_pitch * 4
                    tile(
                        source,
                        zeros,
                        offsets,
                        args.taps,
                        args.depth,
                        panel_weights,
                        bias + panel * width * 4,
                        out + (group * args.out_group + pixel * args.out_pitch + first) * 4,
                        args.out_pitch * 4,
                        here,
                        args.channels - first,
                        args.low,
                        args.high,
                    )

    return conv


def _portable(shape: Tile) -> KernelFunction:
    """The same in plain loops over arrays, one pixel after the other."""
    rows, width = shape.rows, shape.vectors * panel_lanes(Level.PORTABLE)

    def conv(args: Any, bases: Any, thread: int, threads: int) -> None:
        panels = -(-args.channels // width)
        sums = stack_array(width, np.float32)
        first_pixel, last_pixel, first_panel, last_panel = _shares(args.pixels, panels * args.groups, thread, threads)
        for pixel in range(first_pixel, last_pixel):
            block, row = pixel // rows, pixel % rows
            for panel in range(first_panel, last_panel):
                group, first = panel // panels, panel % panels * width
                count = min(args.channels - first, width)
                bias = view(bases, args.bias + panel * width * 4, width, np.float32)
                for c in range(width):
                    sums[c] = bias[c]
                for tap in range(args.taps):
                    place = args.x + (pixel * args.x_pitch + group * args.x_group) * 4
                    if args.table != 0:
                        offset = view(bases, args.table + ((block * args.taps + tap) * rows + row) * 4, 1, np.int32)[0]
                        place = args.zeros if offset < 0 else args.x + offset + group * args.x_group * 4
                    x = view(bases, place, args.depth, np.float32)
                    packed = args.weights + (panel * args.taps + tap) * args.depth * width * 4
                    weights = view(bases, packed, args.depth * width, np.float32)
                    for k in range(args.depth):
                        element, column = x[k], weights[k * width : (k + 1) * width]
                        for c in range(width):
                            sums[c] += element * column[c]
                out = args.out + (pixel * args.out_pitch + group * args.out_group + first) * 4
                results = view(bases, out, count, np.float32)
                for c in range(count):
                    results[c] = min(max(sums[c], args.low), args.high)

    return conv
