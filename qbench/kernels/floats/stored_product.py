"""Rows of float32 times weights of 8 bits, for kernels that multiply on their way.

A row is rounded to 24 bits by its own range and cut into three bytes, which are three rows for the tiles of integers:
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
_MIDDLE = 2**23
_PARTS = 3
"""Bytes of an element."""
_CONSTANTS = 3
"""Numbers for each column: its scale, what is added, and the sum of its weights."""

_ONE: Mapping[Level, Tile] = {
    Level.AMX: Tile(_PARTS, 8),
    Level.AVX512VNNI: Tile(_PARTS, 8),
    Level.AVXVNNI: Tile(_PARTS, 4),
    Level.AVX2: Tile(_PARTS, 2),
    Level.PORTABLE: Tile(_PARTS, 4),
}
"""Tiles for the parts of one row."""


def choose_stored_tile(level: Level, rows: int, columns: int, depth: int) -> Tile:
    """The fastest tile that holds all parts of as many rows as it begins.

    Parameters
    ----------
    rows, columns, depth
        How many rows, results of each, and elements of each.
    """
    if rows == 1 or level is Level.PORTABLE:
        return _ONE[level]
    return choose_tile(level.vectors, _PARTS * rows, columns, depth, fits=lambda tile: tile.rows % _PARTS == 0)


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


@register_jitable
def _room(depth: Any) -> Any:
    """Bytes of one part of a row: whole steps of the tiles, which take four elements each."""
    return -(-depth // 4) * 4


@register_jitable
def bytes_of_parts(depth: Any) -> Any:
    """What the parts of a row take, with its scale behind them."""
    return _PARTS * _room(depth) + 4


def stored_product_of(level: Level, tile: Tile) -> Callable[..., None]:
    """What multiplies rows in compiled code; each result is the same whatever rows are beside it, on every level.

    ``multiply(bases, x, x_pitch, weights, columns_of, out, out_pitch, rows, depth, columns, parts)``

    x, out
        References of the first row and the first result; rows lie `x_pitch` and `out_pitch` bytes apart.
    weights, columns_of
        References, from `pack_stored` and `pack_columns`.
    rows, depth, columns
        How many rows, elements of each, and results of each.
    parts
        Reference of `bytes_of_parts` for each row.
    """
    return _portable(tile) if level == Level.PORTABLE else _tiled(level.vectors, tile)


@register_jitable
def _cut(bases, x, depth, parts):
    """Round a row to 24 bits, cut the integers into bytes, and write what one of them stands for behind those."""
    row, room = view(bases, x, depth, np.float32), _room(depth)
    bits, top = view(bases, x, depth, np.int32), np.int32(0)
    for i in range(depth):  # the order of magnitudes is that of their bits
        top = max(top, bits[i] & np.int32(0x7FFFFFFF))
    place = parts + _PARTS * room
    view(bases, place, 1, np.int32)[0] = top
    largest = view(bases, place, 1, np.float32)[0]
    factor = _LARGEST / largest if largest >= _SMALLEST else np.float32(0)
    upper, middle = view(bases, parts, room, np.uint8), view(bases, parts + room, room, np.uint8)
    lower = view(bases, parts + 2 * room, room, np.uint8)
    for i in range(depth):
        code = np.int32(np.rint(row[i] * factor)) + _MIDDLE
        upper[i] = np.uint8(code >> 16)
        middle[i] = np.uint8((code >> 8) & 255)
        lower[i] = np.uint8(code & 255)
    for i in range(depth, room):
        upper[at(i)] = middle[at(i)] = lower[at(i)] = 0
    view(bases, place, 1, np.float32)[0] = largest / _LARGEST


@register_jitable
def _finish(sums: Any, numbers: Any, unit: Any, out: Any) -> None:
    """Real numbers of the sums of all parts of a row (parts, columns); `numbers` as `pack_columns` has them."""
    for c in range(len(out)):
        total = np.float64(sums[0, c]) * 65536 + np.float64(sums[1, c]) * 256 + np.float64(sums[2, c])
        total -= np.float64(numbers[2, c]) * _MIDDLE
        out[c] = np.float32(total) * (numbers[0, c] * unit) + numbers[1, c]


def _tiled(level: Level, shape: Tile) -> Callable[..., None]:
    isa = isa_of(level, "u1")
    tile, width, most = make_tile(isa, shape, Accumulators()), shape.vectors * isa.lanes, shape.rows // _PARTS
    line_bytes, step_bytes = 4 * width, shape.vectors * isa.weight_bytes
    bytes_of_offsets, bytes_of_sums, group = 4 * shape.rows, shape.rows * line_bytes, isa.group
    panel_numbers = 4 * _CONSTANTS * width

    @register_jitable
    def multiply(bases, x, x_pitch, weights, columns_of, out, out_pitch, rows, depth, columns, parts):
        start, line, place = stack(line_bytes), stack(bytes_of_offsets), stack(bytes_of_sums)
        view(bases, start, width, np.int32)[:] = 0
        offsets, sums = view(bases, line, _PARTS * most, np.int32), view(bases, place, _PARTS * most * width, np.int32)
        apart, room = bytes_of_parts(depth), _room(depth)
        steps = room // group
        for row in range(rows):
            _cut(bases, x + row * x_pitch, depth, parts + row * apart)
        source, packed = address_of(bases, parts), address_of(bases, weights)
        for panel in range(-(-columns // width)):
            first = panel * width
            count = min(columns - first, width)
            numbers = view(bases, columns_of + panel * panel_numbers, _CONSTANTS * width, np.float32).reshape(
                (_CONSTANTS, width)
            )
            for block in range(0, rows, most):
                here = min(rows - block, most)
                for r in range(most):
                    for part in range(_PARTS):
                        offsets[at(_PARTS * r + part)] = min(r, here - 1) * apart + part * room
                tile(
                    source + block * apart, source, line, 1, steps, packed + panel * steps * step_bytes, start, place,
                    line_bytes, _PARTS * here, width, (0,),
                )  # fmt: skip
                for r in range(here):
                    unit = view(bases, parts + (block + r) * apart + _PARTS * room, 1, np.float32)[0]
                    mine = sums[_PARTS * r * width : _PARTS * (r + 1) * width].reshape((_PARTS, width))
                    result = view(bases, out + (block + r) * out_pitch + first * 4, count, np.float32)
                    _finish(mine, numbers, unit, result)

    return multiply


def _portable(shape: Tile) -> Callable[..., None]:
    """The same in plain loops, one row after the other."""
    width = shape.vectors * packing(Level.PORTABLE)[0]
    panel_numbers, most = 4 * _CONSTANTS * width, _PARTS * width

    @register_jitable
    def multiply(bases, x, x_pitch, weights, columns_of, out, out_pitch, rows, depth, columns, parts):
        sums = stack_array(most, np.int32).reshape((_PARTS, width))
        room = _room(depth)
        for row in range(rows):
            _cut(bases, x + row * x_pitch, depth, parts)
            unit = view(bases, parts + _PARTS * room, 1, np.float32)[0]
            for panel in range(-(-columns // width)):
                first = panel * width
                factors = view(bases, weights + first * depth, depth * width, np.int8).reshape((depth, width))
                sums[:] = 0
                for part in range(_PARTS):
                    codes = view(bases, parts + part * room, depth, np.uint8)
                    for k in range(depth):
                        for c in range(width):
                            sums[part, c] += np.int32(codes[k]) * np.int32(factors[k, c])
                numbers = view(bases, columns_of + panel * panel_numbers, _CONSTANTS * width, np.float32).reshape(
                    (_CONSTANTS, width)
                )
                result = view(bases, out + row * out_pitch + first * 4, min(columns - first, width), np.float32)
                _finish(sums, numbers, unit, result)

    return multiply
