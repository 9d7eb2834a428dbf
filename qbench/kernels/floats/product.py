"""Rows of float32 times packed weights, for kernels that multiply on their way."""

import math
from collections.abc import Callable

import numpy as np

from qbench.kernels.floats.conv import panel_lanes
from qbench.kernels.floats.tile import float_tile
from qbench.kernels.floats.vectors import VECTORS
from qbench.kernels.jit import register_jitable
from qbench.kernels.levels import Level
from qbench.kernels.memory import address_of, view
from qbench.kernels.stack import stack
from qbench.kernels.tile import Tile

_LOW, _HIGH = np.float32(-math.inf), np.float32(math.inf)


def product_of(level: Level, tile: Tile) -> Callable[..., None]:
    """What multiplies rows in compiled code; each result is the same whatever rows are beside it.

    ``multiply(bases, x, x_pitch, weights, bias, out, out_pitch, rows, depth, columns)``

    x, out
        References of the first row and the first result; rows lie `x_pitch` and `out_pitch` bytes apart.
    weights, bias
        References, from `pack.pack_weights` with a group of 1 and `pack.pack_channels`.
    rows, depth, columns
        How many rows, elements of each, and results of each.
    """
    return _portable(tile) if level == Level.PORTABLE else _tiled(level, tile)


def _tiled(level: Level, shape: Tile) -> Callable[..., None]:
    vectors = VECTORS[level]
    tile, most, width = float_tile(vectors, shape), shape.rows, shape.vectors * vectors.lanes
    line_bytes, panel_bytes = 4 * shape.rows, 4 * width

    @register_jitable
    def multiply(bases, x, x_pitch, weights, bias, out, out_pitch, rows, depth, columns):
        line = stack(line_bytes)
        offsets = view(bases, line, most, np.int32)
        source, target = address_of(bases, x), address_of(bases, out)
        packed, first = address_of(bases, weights), address_of(bases, bias)
        for panel in range(-(-columns // width)):
            channels, column = min(columns - panel * width, width), panel * panel_bytes
            for row in range(0, rows, most):
                here = min(rows - row, most)
                for r in range(most):
                    offsets[r] = min(r, here - 1) * x_pitch
                tile(
                    source + row * x_pitch, source, line, 1, depth, packed + column * depth, packed + column * depth,
                    first + column, 0, target + row * out_pitch + column, out_pitch, here, channels, _LOW, _HIGH,
                )  # fmt: skip

    return multiply


def _portable(shape: Tile) -> Callable[..., None]:
    """The same in plain loops, one row after the other."""
    width = shape.vectors * panel_lanes(Level.PORTABLE)

    @register_jitable
    def multiply(bases, x, x_pitch, weights, bias, out, out_pitch, rows, depth, columns):
        for panel in range(-(-columns // width)):
            channels, column = min(columns - panel * width, width), panel * width * 4
            packed, start = view(bases, weights + column * depth, depth * width, np.float32), bias + column
            for row in range(rows):
                elements = view(bases, x + row * x_pitch, depth, np.float32)
                sums = view(bases, out + row * out_pitch + column, channels, np.float32)
                sums[:] = view(bases, start, channels, np.float32)
                for k in range(depth):
                    sums += elements[k] * packed[k * width : k * width + channels]

    return multiply
