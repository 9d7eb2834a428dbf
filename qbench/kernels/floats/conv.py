"""Convolutions and matrix products of float32: tiles over pixels and output channels.

A dense layer is a convolution of one tap over as many pixels as there are rows; a batched product has a group for each
matrix.
"""

import numpy as np

from qbench.kernels.floats.denormals import without_denormals
from qbench.kernels.floats.tile import AHEAD, float_tile
from qbench.kernels.floats.vectors import VECTORS
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, KernelFunction, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import address_of, view
from qbench.kernels.panels import by_pixels, by_tiles, input_of
from qbench.kernels.stack import stack_array
from qbench.kernels.tile import Tile

_SIZES = (
    "x", "zeros", "table", "weights", "bias", "added", "out", "pixels", "taps", "depth", "groups", "channels",
    "pitch", "group_pitch", "out_pitch", "group_out", "chunk",
)  # fmt: skip
ARGUMENTS = record(**dict.fromkeys(_SIZES, "i8"), low="f4", high="f4")
"""Arguments of every kernel here.

x, zeros
    Input, and `depth` zeros that are read where a window sticks out.
table
    From `pack.offsets`; 0 where there is one tap and the pixels lie `pitch` apart.
weights, bias
    From `pack.pack_weights` with a group of 1 and `pack.pack_channels`.
added
    What is added to the results before they are bounded, as far apart as they are; 0 for nothing.
out
    Results, whose pixels lie `out_pitch` apart.
pixels, taps, depth
    Output pixels of all images; taps of the window; input elements of each.
groups, channels
    Groups, and output channels of each.
pitch, group_pitch, out_pitch, group_out
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


@makes_kernels
def float_conv_kernel(level: Level, tile: Tile) -> Kernel:
    """The kernel of one shape of tile."""
    function = _portable(tile) if level == Level.PORTABLE else _tiled(level, tile)
    return Kernel(f"float.conv.{level}.{tile}", ARGUMENTS, function)


def _tiled(level: Level, shape: Tile) -> KernelFunction:
    vectors = VECTORS[level]
    tile, width = float_tile(vectors, shape), shape.vectors * vectors.lanes
    rows_of_tile, parts = shape.rows, 4 * width // AHEAD

    @register_jitable(inline="always")
    def run_tile(args, bases, source, zeros, offsets, offset_bytes, depth, weights, channel, out, rows, channels):
        bias = address_of(bases, args.bias) + channel * 4
        pitch, added = args.out_pitch * 4, args.added
        if added != 0:
            added = address_of(bases, added) + (out - address_of(bases, args.out))
        ahead, each = weights, args.taps * depth * AHEAD
        if args.chunk > 1 and args.groups == 1:  # while blocks use this panel, each fetches a part of the next one
            block = (out - address_of(bases, args.out)) // (pitch * rows_of_tile) % args.chunk
            ahead += args.taps * depth * 4 * width + min(block, parts - 1) * each
        tile(
            source, zeros, offsets, args.taps, depth, weights, ahead, bias, added, out, pitch, rows, channels,
            args.low, args.high,
        )  # fmt: skip

    return without_denormals(by_tiles(shape.rows, width, (1, 4 * width), (4, 4), run_tile))


def _portable(shape: Tile) -> KernelFunction:
    """The same in plain loops over arrays, one pixel after the other."""
    rows, width = shape.rows, shape.vectors * panel_lanes(Level.PORTABLE)

    @register_jitable
    def run_pixel(args, bases, source, pixel, line, panel, place, count):
        sums = stack_array(width, np.float32)
        bias = view(bases, args.bias + panel * width * 4, width, np.float32)
        for c in range(width):
            sums[c] = bias[c]
        for tap in range(args.taps):
            x = view(bases, input_of(args, bases, source, pixel, line + tap * rows, 4), args.depth, np.float32)
            packed = args.weights + (panel * args.taps + tap) * args.depth * width * 4
            weights = view(bases, packed, args.depth * width, np.float32)
            for k in range(args.depth):
                element, column = x[k], weights[k * width : (k + 1) * width]
                for c in range(width):
                    sums[c] += element * column[c]
        if args.added != 0:
            added = view(bases, args.added + (place - args.out), count, np.float32)
            for c in range(count):
                sums[c] += added[c]
        results = view(bases, place, count, np.float32)
        for c in range(count):
            results[c] = min(max(sums[c], args.low), args.high)

    return by_pixels(rows, width, (4, 4), run_pixel)
