"""Depthwise convolutions of channels-last float32 images: each channel has its own window."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from qbench.kernels.floats.depthwise_tile import depthwise_tile
from qbench.kernels.floats.vectors import VECTORS
from qbench.kernels.kernel import Kernel, KernelFunction, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import address_of, view
from qbench.kernels.split import share

__all__ = ["ARGUMENTS", "float_depthwise_kernel", "pack_depthwise", "pad_channels"]

_SIZES = (
    "x", "weights", "bias", "out", "images", "height", "width", "channels", "out_height", "out_width",
    "x_image", "x_row", "x_pitch", "out_image", "out_row", "out_pitch",
    "kh", "kw", "sh", "sw", "dh", "dw", "top", "left",
)  # fmt: skip
ARGUMENTS = record(**dict.fromkeys(_SIZES, "i8"), low="f4", high="f4")
"""Arguments of every kernel here.

x, out
    Images, with the elements from one to the next, from row to row and from pixel to pixel.
weights, bias
    From `pack_depthwise` and `pad_channels`.
kh, kw, sh, sw, dh, dw, top, left
    The window, its strides and dilation, and the rows and columns by which the first one sticks out.
low, high
    Bounds of the results.
"""

_BLOCK = 32
"""Channels at a time: of two vectors at most."""


def pack_depthwise(weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Weights [channels, kh, kw] as [blocks, kh, kw, channels of a block], filled up with zeros."""
    channels, kh, kw = weights.shape
    filled = np.pad(weights, ((0, -channels % _BLOCK), (0, 0), (0, 0))).reshape(-1, _BLOCK, kh, kw)
    return np.ascontiguousarray(filled.transpose(0, 2, 3, 1))


def pad_channels(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """One number per channel, filled up with zeros to the blocks of `pack_depthwise`."""
    return np.pad(values, (0, -len(values) % _BLOCK))


@cache
def float_depthwise_kernel(level: Level) -> Kernel:
    """The kernel of a level."""
    function = _portable if level == Level.PORTABLE else _tiled(level)
    return Kernel(f"float.depthwise.{level}", ARGUMENTS, function)


@register_jitable
def _inside(start: Any, step: Any, taps: Any, size: Any) -> Any:
    """First tap and last + 1 that lie within 0..size, of those at start, start + step..."""
    first = max((step - 1 - start) // step, 0)
    return first, max(min((size - start + step - 1) // step, taps), first)


def _tiled(level: Level) -> KernelFunction:
    vectors = VECTORS[level]
    width = 2 * vectors.lanes
    many, one = depthwise_tile(vectors, 4, 2), depthwise_tile(vectors, 1, 2)

    def depthwise(args: Any, bases: Any, thread: int, threads: int) -> None:
        x, weights = address_of(bases, args.x), address_of(bases, args.weights)
        out, bias = address_of(bases, args.out), address_of(bases, args.bias)
        step = args.sw * args.x_pitch * 4
        down, across = args.dh * args.x_row * 4, args.dw * args.x_pitch * 4
        # columns whose windows lie inside the image
        inner = min(-(-args.left // args.sw), args.out_width)
        outer = max(min((args.width + args.left - (args.kw - 1) * args.dw - 1) // args.sw + 1, args.out_width), inner)
        blocks = -(-args.channels // width)
        begin, end = share(args.images * args.out_height * blocks, thread, threads)
        for piece in range(begin, end):
            block, line = piece % blocks, piece // blocks
            image, row = line // args.out_height, line % args.out_height
            channel = block * width
            channels = args.channels - channel
            up = row * args.sh - args.top
            i0, i1 = _inside(up, args.dh, args.kh, args.height)
            source = x + (image * args.x_image + (up + i0 * args.dh) * args.x_row + channel) * 4
            target = out + (image * args.out_image + row * args.out_row + channel) * 4
            packed = weights + (channel // _BLOCK * args.kh * args.kw * _BLOCK + channel % _BLOCK) * 4
            packed += i0 * args.kw * _BLOCK * 4
            first = bias + channel * 4
            column = 0
            while column < args.out_width:
                if inner < outer - 3 < column < outer:
                    column = outer - 4  # some are computed again, with the same bits
                at = column * args.sw - args.left
                place = target + column * args.out_pitch * 4
                if column >= inner and column + 4 <= outer:
                    start = source + at * args.x_pitch * 4
                    many(
                        start, step, i1 - i0, down, args.kw, across, packed, args.kw,
                        first, place, args.out_pitch * 4, channels, args.low, args.high,
                    )  # fmt: skip
                    column += 4
                else:
                    j0, j1 = _inside(at, args.dw, args.kw, args.width)
                    start = source + (at + j0 * args.dw) * args.x_pitch * 4
                    one(
                        start, step, i1 - i0, down, j1 - j0, across, packed + j0 * _BLOCK * 4, args.kw,
                        first, place, args.out_pitch * 4, channels, args.low, args.high,
                    )  # fmt: skip
                    column += 1

    return depthwise


def _portable(args: Any, bases: Any, thread: int, threads: int) -> None:
    """The same in plain loops over arrays."""
    sums = np.empty(_BLOCK, np.float32)
    blocks = -(-args.channels // _BLOCK)
    begin, end = share(args.images * args.out_height * blocks, thread, threads)
    for piece in range(begin, end):
        block, line = piece % blocks, piece // blocks
        image, row = line // args.out_height, line % args.out_height
        count = min(args.channels - block * _BLOCK, _BLOCK)
        up = row * args.sh - args.top
        i0, i1 = _inside(up, args.dh, args.kh, args.height)
        for column in range(args.out_width):
            at = column * args.sw - args.left
            j0, j1 = _inside(at, args.dw, args.kw, args.width)
            sums[:] = view(bases, args.bias + block * _BLOCK * 4, _BLOCK, np.float32)
            for i in range(i0, i1):
                for j in range(j0, j1):
                    pixel = (up + i * args.dh) * args.x_row + (at + j * args.dw) * args.x_pitch
                    place = args.x + (image * args.x_image + pixel + block * _BLOCK) * 4
                    x = view(bases, place, count, np.float32)
                    tap = (block * args.kh + i) * args.kw + j
                    weights = view(bases, args.weights + tap * _BLOCK * 4, count, np.float32)
                    for c in range(count):
                        sums[c] += x[c] * weights[c]
            place = args.out + (image * args.out_image + row * args.out_row + column * args.out_pitch) * 4
            out = view(bases, place + block * _BLOCK * 4, count, np.float32)
            for c in range(count):
                out[c] = min(max(sums[c], args.low), args.high)
