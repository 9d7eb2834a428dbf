"""Bilinear resizing of channels-last images of integers, exact to half a step."""

from typing import Any, Literal

import numpy as np
from numba.extending import register_jitable

from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.rounding import round_shift
from qbench.kernels.split import at, share

_FIELDS = (
    "x", "y", "down", "across", "images", "height", "width", "channels", "out_height", "out_width", "x_image", "x_row",
    "x_pitch", "y_image", "y_row", "y_pitch", "zero",
)  # fmt: skip


@makes_kernels
def resize_linear_kernel(x: Literal["u1", "i2", "u2"], to_even: bool, bits: int) -> Kernel:
    """``y = round(weighted mean of 4 neighbours)``.

    `down` (int64[out_height, 3]) and `across` (int64[out_width, 3]) hold two source indices and the weight of the
    second in units of 2^-bits. Ties, counted from `zero`, go up or to even.
    """
    element, item, shift = np.dtype(x).type, np.dtype(x).itemsize, 2 * bits
    kind: Any = np.int32 if 8 * item + shift < 30 else np.int64  # of the sums; a known shift keeps them in 32 bits
    half = (1 << shift) >> 1

    @register_jitable
    def blend(x, corners, weights, y, start, channels, zero):
        a, b, c, d = corners
        wa, wb, wc, wd = kind(weights[0]), kind(weights[1]), kind(weights[2]), kind(weights[3])
        zero = kind(zero)
        for k in range(channels):
            above = kind(wa * kind(x[at(a + k)] - zero)) + kind(wb * kind(x[at(b + k)] - zero))
            below = kind(wc * kind(x[at(c + k)] - zero)) + kind(wd * kind(x[at(d + k)] - zero))
            sums = kind(above + below)
            y[at(start + k)] = (round_shift(sums, shift, True) if to_even else kind(sums + half) >> shift) + zero

    def resize(args, bases, thread, threads):
        lines, channels, one = args.images * args.out_height, args.channels, np.int64(1) << bits
        begin, end = share(lines, thread, threads)
        if begin >= end or args.out_width * channels == 0:
            return
        size = (args.images - 1) * args.x_image + (args.height - 1) * args.x_row + (args.width - 1) * args.x_pitch
        x = view(bases, args.x, size + channels, element)
        down = view(bases, args.down, 3 * args.out_height, np.int64)
        across = view(bases, args.across, 3 * args.out_width, np.int64)
        for line in range(begin, end):
            image, row = line // args.out_height, line % args.out_height
            upper = image * args.x_image + down[3 * row] * args.x_row
            lower, below = image * args.x_image + down[3 * row + 1] * args.x_row, down[3 * row + 2]
            place = args.y + (image * args.y_image + row * args.y_row) * item
            y = view(bases, place, (args.out_width - 1) * args.y_pitch + channels, element)
            for column in range(args.out_width):
                left, right = across[3 * column] * args.x_pitch, across[3 * column + 1] * args.x_pitch
                beside = across[3 * column + 2]
                weights = (one - below) * (one - beside), (one - below) * beside, below * (one - beside), below * beside
                corners = upper + left, upper + right, lower + left, lower + right
                blend(x, corners, weights, y, column * args.y_pitch, channels, args.zero)

    return Kernel(
        f"resize_linear.{x}.{bits}{'.even' if to_even else ''}", record(**dict.fromkeys(_FIELDS, "i8")), resize
    )
