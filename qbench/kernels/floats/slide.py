"""Windows that slide over channels-last images, channel by channel: the loops around the tiles."""

from collections.abc import Callable
from typing import Any

from qbench.kernels.floats.vectors import VECTORS
from qbench.kernels.floats.window_tile import BLOCK, Taps, window_tile
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
    """
    vectors = VECTORS[level]
    width = 2 * vectors.lanes
    many, one = window_tile(vectors, taps, 4, 2), window_tile(vectors, taps, 1, 2)

    def run(args: Any, bases: Any, thread: int, threads: int) -> None:
        x, out = address_of(bases, args.x), address_of(bases, args.out)
        step, pitch = args.sw * args.x_pitch * 4, args.out_pitch * 4
        down, across = args.dh * args.x_row * 4, args.dw * args.x_pitch * 4
        inner, outer = _whole_columns(args)
        blocks = -(-args.channels // width)
        begin, end = share(args.images * args.out_height * blocks, thread, threads)
        for piece in range(begin, end):
            block, line = piece % blocks, piece // blocks
            image, row = line // args.out_height, line % args.out_height
            channel = block * width
            channels = args.channels - channel
            up = row * args.sh - args.top
            i0, i1 = inside(up, args.dh, args.kh, 0, args.height)
            source = x + (image * args.x_image + (up + i0 * args.dh) * args.x_row + channel) * 4
            target = out + (image * args.out_image + row * args.out_row + channel) * 4
            weights, first = operands(args, bases, channel)
            weights += i0 * args.kw * BLOCK * 4
            column = 0
            while column < args.out_width:
                if inner < outer - 3 < column < outer:
                    column = outer - 4  # some are computed again, with the same bits
                at = column * args.sw - args.left
                low, high = finish(args, up, at)
                place = target + column * pitch
                if column >= inner and column + 4 <= outer:
                    start = source + at * args.x_pitch * 4
                    many(
                        start, step, i1 - i0, down, args.kw, across, weights, args.kw,
                        first, place, pitch, channels, low, high,
                    )  # fmt: skip
                    column += 4
                else:
                    j0, j1 = inside(at, args.dw, args.kw, 0, args.width)
                    start = source + (at + j0 * args.dw) * args.x_pitch * 4
                    one(
                        start, step, i1 - i0, down, j1 - j0, across, weights + j0 * BLOCK * 4, args.kw,
                        first, place, pitch, channels, low, high,
                    )  # fmt: skip
                    column += 1

    return run
