"""Rows of float32 times weights of 8 bits, for kernels that multiply on their way.

A row is rounded to 16 bits by its own range and cut into an upper and a lower byte, two rows for the tiles of integers:
all weights are read once, and the sums are exact.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.kernels.epilogue import Accumulators
from qbench.kernels.isa import isa_of
from qbench.kernels.jit import register_jitable
from qbench.kernels.levels import Level
from qbench.kernels.memory import address_of, view
from qbench.kernels.pack import pack_weights, packing
from qbench.kernels.shape import choose_tile
from qbench.kernels.split import at
from qbench.kernels.stack import stack, stack_array
from qbench.kernels.tile import Tile, make_tile
from qbench.quant.wide_rows import LARGEST, SMALLEST_RANGE

_LARGEST, _SMALLEST = np.float32(LARGEST), np.float32(SMALLEST_RANGE)
_MIDDLE = 2**15
_CONSTANTS = 3
"""Numbers for each column: its scale, what is added, and the sum of its weights."""

_ONE: Mapping[Level, Tile] = {
    Level.AMX: Tile(2, 8),
    Level.AVX512VNNI: Tile(2, 8),
    Level.AVXVNNI: Tile(2, 4),
    Level.AVX2: Tile(2, 4),
    Level.PORTABLE: Tile(2, 4),
}
"""Tiles for the two halves of one row."""


def choose_stored_tile(level: Level, rows: int, columns: int, depth: int) -> Tile:
    """The fastest tile of an even number of rows, so that both halves of a row are in one.

    Parameters
    ----------
    rows, columns, depth
        How many rows, results of each, and elements of each.
    """
    if rows == 1 or level is Level.PORTABLE:
        return _ONE[level]
    return choose_tile(level.vectors, 2 * rows, columns, depth, fits=lambda tile: tile.rows % 2 == 0)


def pack_stored(weights: NDArray[np.int8], tile: Tile, level: Level) -> NDArray[np.int8]:
    """Weights [columns, depth] as the product reads them."""
    lanes, group = packing(level)
    return pack_weights(weights[None, :, None], tile, lanes, group)


def pack_columns(
    weights: NDArray[np.int8], scales: NDArray[np.float32], offset: NDArray[np.float32], tile: Tile, level: Level
) -> NDArray[np.float32]:
    """What the product knows of each column: [panels, 3, columns of a panel]."""
    width = tile.vectors * packing(level)[0]
    sums = weights.sum(axis=1, dtype=np.int64).astype(np.float32)
    numbers = np.stack([scales, offset, sums])
    filled = np.pad(numbers, ((0, 0), (0, -numbers.shape[1] % width)))
    return np.ascontiguousarray(filled.reshape(_CONSTANTS, -1, width).swapaxes(0, 1))


def bytes_of_halves(depth: Any) -> Any:
    """What the rounded halves of a row take, with their scale behind them."""
    return 2 * (-(-depth // 4) * 4) + 4


def stored_product_of(level: Level, tile: Tile) -> Callable[..., None]:
    """What multiplies rows in compiled code; each result is the same whatever rows are beside it, on every level.

    ``multiply(bases, x, x_pitch, weights, columns_of, out, out_pitch, rows, depth, columns, halves)``

    x, out
        References of the first row and the first result; rows lie `x_pitch` and `out_pitch` bytes apart.
    weights, columns_of
        References, from `pack_stored` and `pack_columns`.
    rows, depth, columns
        How many rows, elements of each, and results of each.
    halves
        Reference of `bytes_of_halves` for each row.
    """
    return _portable(tile) if level == Level.PORTABLE else _tiled(level.vectors, tile)


_halves_bytes = register_jitable(bytes_of_halves)


@register_jitable
def _halve(bases, x, depth, halves):
    """Round a row to 16 bits, cut the integers into bytes, and write what one of them stands for behind those."""
    row, room = view(bases, x, depth, np.float32), -(-depth // 4) * 4
    bits, top = view(bases, x, depth, np.int32), np.int32(0)
    for i in range(depth):  # the order of magnitudes is that of their bits
        top = max(top, bits[i] & np.int32(0x7FFFFFFF))
    place = halves + 2 * room
    view(bases, place, 1, np.int32)[0] = top
    largest = view(bases, place, 1, np.float32)[0]
    factor = _LARGEST / largest if largest >= _SMALLEST else np.float32(0)
    upper, lower = view(bases, halves, room, np.uint8), view(bases, halves + room, room, np.uint8)
    for i in range(depth):
        code = np.int32(np.rint(row[i] * factor)) + _MIDDLE
        upper[i] = np.uint8(code >> 8)
        lower[i] = np.uint8(code & 255)
    for i in range(depth, room):
        upper[at(i)] = lower[at(i)] = 0
    view(bases, place, 1, np.float32)[0] = largest / _LARGEST


@register_jitable
def _finish(upper: Any, lower: Any, numbers: Any, unit: Any, out: Any) -> None:
    """Real numbers of the sums of both halves of a row; `numbers` as `pack_columns` has them."""
    for c in range(len(out)):
        total = np.float64(upper[c]) * 256 + np.float64(lower[c]) - np.float64(numbers[2, c]) * _MIDDLE
        out[c] = np.float32(total) * (numbers[0, c] * unit) + numbers[1, c]


def _tiled(level: Level, shape: Tile) -> Callable[..., None]:
    isa = isa_of(level, "u1")
    tile, width, most = make_tile(isa, shape, Accumulators()), shape.vectors * isa.lanes, shape.rows // 2
    line_bytes, step_bytes = 4 * width, shape.vectors * isa.weight_bytes
    bytes_of_offsets, bytes_of_sums, group = 4 * shape.rows, shape.rows * line_bytes, isa.group
    panel_numbers = 4 * _CONSTANTS * width

    @register_jitable
    def multiply(bases, x, x_pitch, weights, columns_of, out, out_pitch, rows, depth, columns, halves):
        start, line, place = stack(line_bytes), stack(bytes_of_offsets), stack(bytes_of_sums)
        view(bases, start, width, np.int32)[:] = 0
        offsets, sums = view(bases, line, 2 * most, np.int32), view(bases, place, 2 * most * width, np.int32)
        apart, steps = _halves_bytes(depth), -(-depth // group)
        room = steps * group
        for row in range(rows):
            _halve(bases, x + row * x_pitch, depth, halves + row * apart)
        source, packed = address_of(bases, halves), address_of(bases, weights)
        for panel in range(-(-columns // width)):
            first = panel * width
            count = min(columns - first, width)
            numbers = view(bases, columns_of + panel * panel_numbers, 3 * width, np.float32).reshape((3, width))
            for block in range(0, rows, most):
                here = min(rows - block, most)
                for r in range(most):
                    offsets[2 * r] = min(r, here - 1) * apart
                    offsets[at(2 * r + 1)] = min(r, here - 1) * apart + room
                tile(
                    source + block * apart, source, line, 1, steps, packed + panel * steps * step_bytes, start, place,
                    line_bytes, 2 * here, width, (0,),
                )  # fmt: skip
                for r in range(here):
                    unit = view(bases, halves + (block + r) * apart + 2 * room, 1, np.float32)[0]
                    upper = sums[2 * r * width : (2 * r + 1) * width]
                    lower = sums[(2 * r + 1) * width : (2 * r + 2) * width]
                    result = view(bases, out + (block + r) * out_pitch + first * 4, count, np.float32)
                    _finish(upper, lower, numbers, unit, result)

    return multiply


def _portable(shape: Tile) -> Callable[..., None]:
    """The same in plain loops, one row after the other."""
    width = shape.vectors * packing(Level.PORTABLE)[0]
    panel_numbers = 4 * _CONSTANTS * width

    @register_jitable
    def multiply(bases, x, x_pitch, weights, columns_of, out, out_pitch, rows, depth, columns, halves):
        upper, lower = stack_array(width, np.int32), stack_array(width, np.int32)
        room = -(-depth // 4) * 4
        for row in range(rows):
            _halve(bases, x + row * x_pitch, depth, halves)
            above, below = view(bases, halves, depth, np.uint8), view(bases, halves + room, depth, np.uint8)
            unit = view(bases, halves + 2 * room, 1, np.float32)[0]
            for panel in range(-(-columns // width)):
                first = panel * width
                factors = view(bases, weights + first * depth, depth * width, np.int8).reshape((depth, width))
                upper[:] = 0
                lower[:] = 0
                for k in range(depth):
                    for c in range(width):
                        upper[c] += np.int32(above[k]) * np.int32(factors[k, c])
                        lower[c] += np.int32(below[k]) * np.int32(factors[k, c])
                numbers = view(bases, columns_of + panel * panel_numbers, 3 * width, np.float32).reshape((3, width))
                result = view(bases, out + row * out_pitch + first * 4, min(columns - first, width), np.float32)
                _finish(upper, lower, numbers, unit, result)

    return multiply
