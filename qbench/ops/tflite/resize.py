"""TFLite's bilinear resizing: weights of ten bits for signed integers, float32 for uint8."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbench.errors import GraphError
from qbench.ir.op import Array, Op, register
from qbench.ir.types import TensorType
from qbench.ops.numeric.interpolation import Coordinates
from qbench.ops.rules import InternalOp

WEIGHT_BITS = 10
"""Weights of signed integers are multiples of 2^-10."""

_ONE = 1 << WEIGHT_BITS

Corners = tuple[Array, Array, Array, Array]


@dataclass(frozen=True, kw_only=True)
class _Resize(InternalOp):
    def _sized(self, data: TensorType, rows: TensorType, columns: TensorType, entry: int) -> TensorType:
        if data.rank != 4 or rows.shape[1:] != (entry,) or columns.shape[1:] != (entry,):
            raise GraphError(f"{self.name} needs data of rank 4, tables [n, {entry}], not {data}, {rows}, {columns}")
        return TensorType((*data.shape[:2], rows.shape[0], columns.shape[0]), data.dtype)


def _corners(data: Array, rows: Array, columns: Array) -> Corners:
    """Of each result: above left, below left, above right, below right."""
    above, below = data[:, :, rows[:, 0]], data[:, :, rows[:, 1]]
    left, right = columns[:, 0], columns[:, 1]
    return above[..., left], below[..., left], above[..., right], below[..., right]


@register
class TfliteResizeInteger(_Resize):
    """Bilinear interpolation with weights in units of 2^-10, ties away from zero.

    `rows` [height, 3] and `columns` [width, 3] hold, per output index, the two source indices and how far behind the
    first it lies, which may be negative at the border.
    """

    name = "integer.tflite_resize"
    operands = ("data", "rows", "columns")

    def infer(self, data: TensorType, rows: TensorType, columns: TensorType) -> TensorType:
        return self._sized(data, rows, columns, 3)

    def compute(self, data: Array, rows: Array, columns: Array) -> Array:
        a, b, c, d = _corners(data.astype(np.int64), rows, columns)
        down, across = rows[:, 2].astype(np.int64)[:, None], columns[:, 2].astype(np.int64)
        total = (a * (_ONE - down) + b * down) * (_ONE - across) + (c * (_ONE - down) + d * down) * across
        rounded = np.sign(total) * ((np.abs(total) + _ONE**2 // 2) >> 2 * WEIGHT_BITS)
        return rounded.astype(data.dtype)


@register
class TfliteResizeFloat(_Resize):
    """Bilinear interpolation in float32, term by term; half a step is added in float32 too before the fraction is cut.

    `rows` [height, 2] and `columns` [width, 2] hold source indices, `down` [height] and `across` [width] the weights.
    """

    name = "integer.tflite_resize_float"
    operands = ("data", "rows", "columns", "down", "across")

    def infer(
        self, data: TensorType, rows: TensorType, columns: TensorType, down: TensorType, across: TensorType
    ) -> TensorType:
        wanted = [TensorType(table.shape[:1], "float32") for table in (rows, columns)]
        if [down, across] != wanted:
            raise GraphError(f"{self.name} needs weights {wanted[0]} and {wanted[1]}, not {down} and {across}")
        return self._sized(data, rows, columns, 2)

    def compute(self, data: Array, rows: Array, columns: Array, down: Array, across: Array) -> Array:
        a, b, c, d = _corners(data.astype(np.float32), rows, columns)
        down, one = down[:, None], np.float32(1)
        total = a * (one - down) * (one - across) + b * down * (one - across)
        total = total + c * (one - down) * across + d * down * across
        return np.trunc(total + np.float32(0.5)).astype(data.dtype)


def tflite_resize(data: TensorType, size: tuple[int, int], coordinates: Coordinates) -> tuple[Op, dict[str, Array]]:
    """The op for data of that type, and its constants."""
    sizes = data.shape[2:]
    if any(isinstance(dim, str) for dim in sizes):
        raise GraphError(f"bilinear resizing needs a known height and width, not {data}")
    if data.dtype == "uint8":
        (rows, down), (columns, across) = (
            _float_places(int(source), out, coordinates) for source, out in zip(sizes, size, strict=True)
        )
        return TfliteResizeFloat(), {"rows": rows, "columns": columns, "down": down, "across": across}
    rows, columns = (_integer_places(int(source), out, coordinates) for source, out in zip(sizes, size, strict=True))
    return TfliteResizeInteger(), {"rows": rows, "columns": columns}


def _integer_places(source: int, out: int, coordinates: Coordinates) -> NDArray[np.int32]:
    scale = (1024 * source + out // 2) // out
    if coordinates == "align_corners" and out > 1:
        scale = (1024 * (source - 1) + (out - 1) // 2) // (out - 1)
    place = np.arange(out) * scale
    if coordinates == "half_pixel":
        place = place + scale // 2 - 512
    # a scale that was rounded up may lead behind the last one, where TFLite reads whatever lies there
    lower = np.clip(np.trunc(place / 1024).astype(np.int64), 0, source - 1)
    upper = np.minimum(np.trunc((place + 1023) / 1024).astype(np.int64), source - 1)
    return np.stack([lower, upper, place - 1024 * lower], axis=1).astype(np.int32)


def _float_places(source: int, out: int, coordinates: Coordinates) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    scale = np.float32(source) / np.float32(out)
    if coordinates == "align_corners" and out > 1:
        scale = np.float32(source - 1) / np.float32(out - 1)
    place = np.arange(out).astype(np.float32)
    place = (place + np.float32(0.5)) * scale - np.float32(0.5) if coordinates == "half_pixel" else place * scale
    lower = np.maximum(np.floor(place).astype(np.int64), 0)
    upper = np.minimum(np.ceil(place).astype(np.int64), source - 1)
    return np.stack([lower, upper], axis=1).astype(np.int32), place - lower.astype(np.float32)
