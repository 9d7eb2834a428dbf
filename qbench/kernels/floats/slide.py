"""Windows that slide over channels-last images, channel by channel: the loops around the tiles."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from qbench.kernels.floats.vectors import VECTORS
from qbench.kernels.floats.window_tile import BLOCK, Known, Taps, window_tile
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import KernelFunction
from qbench.kernels.levels import Level
from qbench.kernels.memory import address_of
from qbench.kernels.split import share

IMAGES = (
    "x", "out", "images", "height", "width", "channels", "out_height", "out_width",
    "x_image", "x_row", "x_pitch", "out_image", "out_row", "out_pitch",
    "kh", "kw", "sh", "sw", "dh", "dw", "top", "left",
)  # fmt: skip
"""Arguments of every kernel here, integers: the images, with the elements from one to the next, from row to row and
from pixel to pixel; the window, its strides and dilation, and the rows and columns by which the first one sticks out.
"""


@dataclass(frozen=True)
class Rows:
    """What the rows of windows have in common that a kernel is made for; the taps of a window are neighbours.

    Parameters
    ----------
    columns, stride
        Taps of a window's row; pixels from one window to the next.
    left, right
        Taps by which the first and the last window stick out of the image.
    neighbours
        Pixels that lie in one vector, side by side, of images with few channels; weights and first values of the sums
        are there as often. Then the stride is 1.
    """

    columns: int
    stride: int
    left: int
    right: int
    neighbours: int

    @property
    def known(self) -> tuple[Known, Known, Known, Known]:
        """Of tiles inside a row, of those with several pixels in a vector, of the first and the last of a row."""
        return (
            Known(self.columns, self.stride),
            Known(self.columns, self.stride * self.neighbours),
            Known(self.columns, self.stride, self.left),
            Known(self.columns, self.stride, 0, self.right),
        )


@register_jitable
def inside(start: Any, step: Any, taps: Any, low: Any, high: Any) -> Any:
    """First tap and last + 1 that lie within low..high, of those at start, start + step..."""
    first = max((low - start + step - 1) // step, 0)
    return first, max(min((high - start + step - 1) // step, taps), first)


@register_jitable
def _whole_columns(args: Any) -> Any:
    """First column and last + 1 of the result whose windows lie inside the image."""
    inner = min(-(-args.left // args.sw), args.out_width)
    outer = (args.width + args.left - (args.kw - 1) * args.dw - 1) // args.sw + 1
    return inner, max(min(outer, args.out_width), inner)


def slide(
    level: Level,
    taps: Taps,
    operands: Callable[[Any, Any, int], tuple[int, int]],
    finish: Callable[[Any, int, int], tuple[Any, Any]],
    rows: Rows | None = None,
) -> KernelFunction:
    """A kernel of vectors.

    Parameters
    ----------
    level
        Has vectors.
    taps
        What becomes of the elements under the window.
    operands
        ``operands(args, bases, channel) -> weights, first``: addresses of the weights and of the first values of the
        sums, from a channel on that `BLOCK` divides.
    finish
        ``finish(args, row, column) -> numbers``: the last two arguments of `window_tile`, for a window that starts at
        a row and column of the input.
    rows
        What all rows of windows have in common, if the kernel is made for them.
    """
    vectors = VECTORS[level]
    lanes, width = vectors.lanes, 2 * vectors.lanes
    known = rows is not None
    left, right, neighbours = (rows.left, rows.right, rows.neighbours) if rows else (0, 0, 1)
    whole, longer, first, last = rows.known if rows else (None,) * 4
    few, long = window_tile(vectors, taps, 4, 2, whole), window_tile(vectors, taps, 8, 1, longer)
    begin_row, end_row = window_tile(vectors, taps, 4, 2, first), window_tile(vectors, taps, 4, 2, last)
    one = window_tile(vectors, taps, 1, 2)

    def run(args: Any, bases: Any, thread: int, threads: int) -> None:
        x, out = address_of(bases, args.x), address_of(bases, args.out)
        step, pitch = args.sw * args.x_pitch * 4, args.out_pitch * 4
        dh, dw = (1, 1) if known else (args.dh, args.dw)
        down, across = dh * args.x_row * 4, dw * args.x_pitch * 4
        inner, outer = _whole_columns(args)
        at_last = (args.out_width - 4) * args.sw - args.left
        edges = known and at_last >= 0 and 3 * args.sw + args.kw <= args.width + args.left
        blocks = -(-args.channels // width)
        begin, end = share(args.images * args.out_height * blocks, thread, threads)
        for piece in range(begin, end):
            block, line = piece % blocks, piece // blocks
            image, row = line // args.out_height, line % args.out_height
            channel = block * width
            channels = args.channels - channel
            up = row * args.sh - args.top
            i0, i1 = inside(up, dh, args.kh, 0, args.height)
            source = x + (image * args.x_image + (up + i0 * dh) * args.x_row + channel) * 4
            target = out + (image * args.out_image + row * args.out_row + channel) * 4
            weights, sums = operands(args, bases, channel)
            weights += i0 * args.kw * BLOCK * 4
            narrow = channels <= lanes and outer - inner >= 8 * neighbours
            size = 8 * neighbours if narrow else 4
            column = 0
            while column < args.out_width:
                if edges and right and column >= args.out_width - 4:
                    column = args.out_width - 4  # some are computed again, with the same bits
                elif inner <= outer - size < column < outer:
                    column = outer - size
                at = column * args.sw - args.left
                low, high = finish(args, up, at)
                place = target + column * pitch
                start = source + at * args.x_pitch * 4
                if edges and left and column == 0:
                    begin_row(
                        start, step, i1 - i0, down, args.kw, across, weights, args.kw,
                        sums, place, pitch, channels, low, high,
                    )  # fmt: skip
                    column += 4
                elif edges and right and column == args.out_width - 4:
                    end_row(
                        start, step, i1 - i0, down, args.kw, across, weights, args.kw,
                        sums, place, pitch, channels, low, high,
                    )  # fmt: skip
                    column += 4
                elif column >= inner and column + size <= outer:
                    if narrow:
                        long(
                            start, step, i1 - i0, down, args.kw, across, weights, args.kw,
                            sums, place, pitch * neighbours, channels * neighbours, low, high,
                        )  # fmt: skip
                    else:
                        few(
                            start, step, i1 - i0, down, args.kw, across, weights, args.kw,
                            sums, place, pitch, channels, low, high,
                        )  # fmt: skip
                    column += size
                else:
                    j0, j1 = inside(at, dw, args.kw, 0, args.width)
                    one(
                        start + j0 * across, step, i1 - i0, down, j1 - j0, across, weights + j0 * BLOCK * 4, args.kw,
                        sums, place, pitch, channels, low, high,
                    )  # fmt: skip
                    column += 1

    return run
