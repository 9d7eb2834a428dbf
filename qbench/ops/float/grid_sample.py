"""Images read at places that the network computes: deformable attention, warping."""

from typing import Literal

import numpy as np

from qbench.ir.op import Array, register
from qbench.ir.types import TensorType
from qbench.ops.rules import FloatOp, need_equal, need_float, need_rank, need_same_dtype


@register
class GridSample(FloatOp):
    """An image read at the places of a grid, interpolated between pixels.

    The data is (N, C, H, W), the grid (N, height, width, 2): x and y between -1 and 1, which are the middles of the
    outermost pixels with `align_corners`, else their outer edges. Beyond them are zeros, the pixels at the border, or
    the image mirrored at its edges. As ONNX's GridSample of opset 20 has it.
    """

    name = "image.grid_sample"
    operands = ("data", "grid")
    float_reason = "unsupported: places computed at run time stay in float"
    method: Literal["linear", "nearest"] = "linear"
    padding: Literal["zeros", "border", "reflection"] = "zeros"
    align_corners: bool = False

    def infer(self, data: TensorType, grid: TensorType) -> TensorType:
        need_float(self, data, grid)
        need_same_dtype(self, data, grid)
        need_rank(self, "data", data, 4)
        need_rank(self, "grid", grid, 4)
        need_equal(self, "the batch of the grid", grid.shape[0], data.shape[0])
        need_equal(self, "the last size of the grid", grid.shape[3], 2)
        return TensorType((*data.shape[:2], *grid.shape[1:3]), data.dtype)

    def compute(self, data: Array, grid: Array) -> Array:
        sizes = data.shape[3], data.shape[2]
        x, y = (self._places(grid[..., axis], size) for axis, size in enumerate(sizes))
        if self.method == "nearest":
            return self._pixels(data, np.rint(x), np.rint(y))
        left, top = np.floor(x), np.floor(y)
        total = np.zeros((*data.shape[:2], *grid.shape[1:3]), data.dtype)
        for column, across in ((left, left + 1 - x), (left + 1, x - left)):
            for row, down in ((top, top + 1 - y), (top + 1, y - top)):
                total += self._pixels(data, column, row) * (across * down)[:, np.newaxis]
        return total

    def _places(self, grid: Array, size: int) -> Array:
        """Along one axis, in pixels."""
        one, real = grid.dtype.type(1), grid.dtype.type
        places = (grid + one) / real(2) * real(size - 1)
        if not self.align_corners:
            places = ((grid + one) * real(size) - one) / real(2)
        if self.padding == "border":
            return np.clip(places, real(0), real(size - 1))
        return self._mirrored(places, size) if self.padding == "reflection" else places

    def _mirrored(self, places: Array, size: int) -> Array:
        """Back and forth between the edges."""
        low, span = (0.0, size - 1) if self.align_corners else (-0.5, size)
        if span == 0:
            return places * 0
        away: Array = np.abs(places - low) % (2 * span)
        mirrored = np.where(away > span, 2 * span - away, away) + low
        return mirrored.astype(places.dtype)

    def _pixels(self, data: Array, columns: Array, rows: Array) -> Array:
        """The pixels at whole places, those beyond the edges as `padding` says."""
        height, width = data.shape[2:]
        inside = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
        x, y = (np.clip(at, 0, most - 1).astype(np.int64) for at, most in ((columns, width), (rows, height)))
        found = data[np.arange(len(data))[:, np.newaxis, np.newaxis], :, y, x].transpose(0, 3, 1, 2)
        return found * inside[:, np.newaxis] if self.padding == "zeros" else found
