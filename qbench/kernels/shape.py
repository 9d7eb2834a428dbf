"""Which tile suits a layer, and in which order its tiles are visited."""

from collections.abc import Callable

from qbench.kernels.isa import Element
from qbench.kernels.levels import Level
from qbench.kernels.matrix import MATRIX, blocks_at_once
from qbench.kernels.pack import packing
from qbench.kernels.tile import Tile

_VNNI = {
    Tile(4, 4): (1.06, 46),
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
    Level.AVX2: {Tile(4, 2): (1, 30), Tile(6, 1): (1.05, 30), Tile(1, 4): (1.35, 20)},
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


_WIDENING = 16
"""So many products of an element are worth a pass that widens it."""
_FEW_PIXELS = 16
"""Weights of twice the size are worth it for more pixels than that: with fewer, they take as long to arrive."""


def widens(level: Level, pixels: int, products: float) -> bool:
    """Whether 8-bit codes are best widened to 16 bits before they are multiplied.

    That holds for ``avx2``: what multiplies bytes there saturates, so each byte would be widened for each tile again.

    Parameters
    ----------
    pixels
        Output pixels.
    products
        Of each element of the input, about.
    """
    return level is Level.AVX2 and pixels > _FEW_PIXELS and products >= _WIDENING


def choose_tile(
    level: Level,
    pixels: int,
    channels: int,
    depth: int,
    x: Element = "u1",
    lines: int = 0,
    fits: Callable[[Tile], bool] = lambda tile: True,
) -> Tile:
    """The tile that takes least time.

    Parameters
    ----------
    pixels, channels, depth
        Output pixels, output channels of one group, and products per output.
    x
        Type of the input's elements.
    lines
        Cache lines of what the window of a pixel sees, if they do not lie one after the other: a matrix needs that.
    fits
        Whether a tile may be taken.
    """
    return _fastest(level, pixels, channels, depth, x, lines, fits)[1]


def choose_groups(level: Level, pixels: int, groups: int, channels: int, taps: int, depth: int) -> int:
    """How many groups of a convolution of 8-bit codes are best done as one, whose weights between them are zeros.

    Few channels leave most of a vector empty, and a tile costs as much besides its products as a full one.

    Parameters
    ----------
    pixels, groups
        Output pixels, and what divides the channels.
    channels, taps, depth
        Of one group: output channels, taps, and input channels.
    """
    lanes, _ = packing(level, "u1")

    def cycles(together: int) -> float:
        return _fastest(level, pixels, channels * together, taps * depth * together, "u1", 0)[0] * groups / together

    few = [count for count in range(1, max(2 * lanes // channels, 1) + 1) if groups % count == 0]
    return min(few, key=cycles)


def _fastest(
    level: Level, pixels: int, channels: int, depth: int, x: Element, lines: int,
    fits: Callable[[Tile], bool] = lambda tile: True,
) -> tuple[float, Tile]:  # fmt: skip
    """What the tile that takes least time costs, in cycles, and the tile."""
    lanes, group = packing(level, x)
    tiles = [tile for tile in TILE_COSTS[level] if fits(tile) and (tile != MATRIX or blocks_at_once(depth))]

    def cycles(tile: Tile) -> float:
        each, besides = TILE_COSTS[level][tile]
        blocks = -(-pixels // tile.rows)
        panels, products = -(-channels // (tile.vectors * lanes)), -(-depth // group) * tile.rows * tile.vectors
        brought = _LINE_CYCLES * lines * tile.rows if tile == MATRIX else 0
        return blocks * (brought + panels * (products * each + besides))

    tile = min(tiles, key=cycles)
    return cycles(tile), tile


def choose_chunk(tile: Tile, depth: int) -> int:
    """Blocks of pixels for which one panel of weights is used before the next: it stays in a near cache meanwhile."""
    return blocks_at_once(depth) if tile == MATRIX else _CHUNK
