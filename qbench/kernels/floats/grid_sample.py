"""Channels-last images read at places that a run brings."""

from typing import Any, Literal

import numpy as np

from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import at, share

Method = Literal["linear", "nearest"]
Padding = Literal["zeros", "border", "reflection"]

_FIELDS = (
    "x", "y", "grid", "images", "channels", "height", "width", "out_height", "out_width", "x_image", "x_row", "x_pitch",
    "y_image", "y_row", "y_pitch",
)  # fmt: skip
_ZERO, _ONE, _TWO, _HALF = np.float32(0), np.float32(1), np.float32(2), np.float32(0.5)


@register_jitable
def _pixel(place: Any, size: Any) -> Any:
    """The index of a whole place, brought within the image whatever it is, NaN too; and whether it was inside."""
    last = np.float32(size - 1)
    inside = place >= _ZERO and place <= last
    place = place if place >= _ZERO else _ZERO
    return np.int64(place if place <= last else last), inside


def _placing(padding: Padding, align_corners: bool) -> Any:
    """What turns a number of the grid into pixels along an axis, in float32 as the op has it."""

    @register_jitable
    def mirrored(place, size):
        low = _ZERO if align_corners else -_HALF
        span = np.float64(size - 1 if align_corners else size)
        if span == 0:
            return place * _ZERO
        away = np.float64(np.abs(np.float32(place - low)))
        away = np.float32(away - 2 * span * np.floor(away / (2 * span)))
        span = np.float32(span)
        return np.float32((_TWO * span - away if away > span else away) + low)

    @register_jitable
    def placed(number, size):
        last = np.float32(size - 1)
        if align_corners:
            place = np.float32(number + _ONE) / _TWO * last
        else:
            place = np.float32(np.float32(number + _ONE) * np.float32(size) - _ONE) / _TWO
        if padding == "border":
            return min(max(place, _ZERO), last) if place == place else place
        return mirrored(place, size) if padding == "reflection" else place

    return placed


@makes_kernels
def grid_sample_kernel(method: Method, padding: Padding, align_corners: bool) -> Kernel:
    """``y[n, i, j] = x[n, grid[n, i, j]]`` for float32, between pixels or from the nearest.

    The grid lies in rows: x and y of each place, of which -1 and 1 are the image's ends.
    """
    placed, keeps = _placing(padding, align_corners), padding != "zeros"

    @register_jitable
    def add(x, start, row, pitch, place, sizes, weight, y, target, channels):
        """Add one pixel; outside of the image there are zeros, whose sum with NaN as weight is NaN."""
        i, above = _pixel(place[0], sizes[0])
        j, beside = _pixel(place[1], sizes[1])
        source, kept = start + i * row + j * pitch, keeps or (above and beside)
        for k in range(channels):
            y[at(target + k)] += (x[at(source + k)] if kept else _ZERO) * weight

    def run(args, bases, thread, threads):
        channels, sizes = args.channels, (args.height, args.width)
        row, pitch, lines = args.x_row, args.x_pitch, args.images * args.out_height
        extent = (args.images - 1) * args.x_image + (args.height - 1) * row + (args.width - 1) * pitch + channels
        x = view(bases, args.x, extent, np.float32)
        grid = view(bases, args.grid, lines * args.out_width * 2, np.float32)
        for line in range(*share(lines, thread, threads)):
            image = line // args.out_height
            start = image * args.x_image
            place = args.y + (image * args.y_image + line % args.out_height * args.y_row) * 4
            y = view(bases, place, (args.out_width - 1) * args.y_pitch + channels, np.float32)
            for column in range(args.out_width):
                number, target = 2 * (line * args.out_width + column), column * args.y_pitch
                across, down = placed(grid[at(number)], sizes[1]), placed(grid[at(number + 1)], sizes[0])
                for k in range(channels):
                    y[at(target + k)] = _ZERO
                if method == "nearest":
                    near = np.float32(np.rint(down)), np.float32(np.rint(across))
                    add(x, start, row, pitch, near, sizes, _ONE, y, target, channels)
                    continue
                top, left = np.float32(np.floor(down)), np.float32(np.floor(across))
                for side in range(2):
                    j = left + np.float32(side)
                    beside = across - left if side else left + _ONE - across
                    for edge in range(2):
                        i = top + np.float32(edge)
                        weight = np.float32(beside * (down - top if edge else top + _ONE - down))
                        add(x, start, row, pitch, (i, j), sizes, weight, y, target, channels)

    name = f"float.grid_sample.{method}.{padding}{'.corners' * align_corners}"
    return Kernel(name, record(**dict.fromkeys(_FIELDS, "i8")), run)
