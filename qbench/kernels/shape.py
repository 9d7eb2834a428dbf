"""Which tile suits a layer, and in which order its tiles are visited."""

from __future__ import annotations

from qbench.kernels.levels import Level
from qbench.kernels.pack import packing
from qbench.kernels.tile import Tile

__all__ = ["choose_chunk", "choose_tile"]

_TILES = {
    Level.AVX512VNNI: (Tile(6, 4), Tile(8, 3), Tile(14, 2), Tile(14, 1)),
    Level.AVXVNNI: (Tile(6, 2), Tile(4, 3), Tile(12, 1)),
    Level.AVX2: (Tile(4, 2), Tile(6, 1)),
    Level.PORTABLE: (Tile(1, 4), Tile(1, 2), Tile(1, 1)),
}
_HALF_OF_L2 = 1 << 19


def choose_tile(level: Level, pixels: int, channels: int, depth: int) -> Tile:
    """The tile that wastes least of its area on what is not there.

    Parameters
    ----------
    pixels, channels, depth
        Output pixels, output channels of one group, and products per output.
    """
    lanes, _ = packing(level)

    def work(tile: Tile) -> float:
        return -(-pixels // tile.rows) * tile.rows * -(-channels // (tile.vectors * lanes)) * tile.vectors

    return min(_TILES[level], key=work)


def choose_chunk(tile: Tile, pixels: int, depth: int, weight_bytes: int) -> int:
    """Blocks of pixels for which one panel of weights is used before the next.

    Small weights stay in cache while pixels pass by once; large ones pass by once per chunk of pixels that stays.
    """
    if weight_bytes <= _HALF_OF_L2:
        return 1
    return max(1, min(-(-pixels // tile.rows), _HALF_OF_L2 // (tile.rows * depth)))
