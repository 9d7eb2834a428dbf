"""Which tile suits a layer, and in which order its tiles are visited."""

from qbench.kernels.isa import Element
from qbench.kernels.levels import Level
from qbench.kernels.matrix import MATRIX, blocks_at_once
from qbench.kernels.pack import packing
from qbench.kernels.tile import Tile

_VNNI = {
    Tile(4, 4): (1.05, 46),
    Tile(6, 4): (1.05, 65),
    Tile(7, 4): (1.05, 95),
    Tile(7, 3): (1.04, 75),
    Tile(10, 2): (1.04, 70),
    Tile(12, 1): (1.06, 71),
    Tile(1, 8): (2.2, 40),  # as fast as weights arrive
}

TILE_COSTS: dict[Level, dict[Tile, tuple[float, int]]] = {
    Level.AMX: {**_VNNI, MATRIX: (0.06, 600)},
    Level.AVX512VNNI: _VNNI,
    Level.AVXVNNI: {Tile(6, 2): (1, 40), Tile(4, 3): (1, 40), Tile(12, 1): (1, 60), Tile(1, 8): (2, 40)},
    Level.AVX2: {Tile(4, 2): (1, 30), Tile(6, 1): (1, 30), Tile(1, 4): (1, 20)},
    Level.PORTABLE: {Tile(1, 4): (1, 0), Tile(1, 2): (1, 0), Tile(1, 1): (1, 0)},
}
"""What tiles cost, measured, in cycles: each vector of a step, and what a tile costs besides."""

EACH: dict[Level, Tile] = {
    Level.AMX: Tile(4, 2),
    Level.AVX512VNNI: Tile(4, 2),
    Level.AVXVNNI: Tile(2, 2),
    Level.AVX2: Tile(2, 2),
    Level.PORTABLE: Tile(1, 4),
}
"""Tiles of depthwise convolutions."""

_CHUNK = 16


_LINE_CYCLES = 4
"""Of a cache line that is brought to where a matrix is read."""


def choose_tile(level: Level, pixels: int, channels: int, depth: int, x: Element = "u1", lines: int = 0) -> Tile:
    """The tile that takes least time.

    Parameters
    ----------
    pixels, channels, depth
        Output pixels, output channels of one group, and products per output.
    x
        Type of the input's elements.
    lines
        Cache lines of what the window of a pixel sees, if they do not lie one after the other: a matrix needs that.
    """
    lanes, group = packing(level, x)
    tiles = [tile for tile in TILE_COSTS[level] if tile != MATRIX or blocks_at_once(depth)]

    def cycles(tile: Tile) -> float:
        each, besides = TILE_COSTS[level][tile]
        blocks = -(-pixels // tile.rows)
        panels, products = -(-channels // (tile.vectors * lanes)), -(-depth // group) * tile.rows * tile.vectors
        brought = _LINE_CYCLES * lines * tile.rows if tile == MATRIX else 0
        return blocks * (brought + panels * (products * each + besides))

    return min(tiles, key=cycles)


def choose_chunk(tile: Tile, pixels: int, depth: int) -> int:
    """Blocks of pixels for which one panel of weights is used before the next.

    With few products per output it pays to keep one panel in the first cache; with many, to read the input only once.
    """
    if tile == MATRIX:
        return blocks_at_once(depth)
    return _CHUNK if depth <= 256 and pixels >= _CHUNK * tile.rows else 1
