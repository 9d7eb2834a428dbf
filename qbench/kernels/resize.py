"""Bilinear resizing of channels-last images of integers."""

from typing import Any, Literal

import numpy as np

from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.rounding import round_shift
from qbench.kernels.split import at, share
from qbench.kernels.stack import stack_array

Mode = Literal["up", "even", "away", "zero", "float"]
"""How sums are rounded: exact ones with ties up, to even or away from zero, all toward zero, or float32 sums."""

_COLUMNS = 64
"""Results of a row that are made in one go."""

_BLENDED = 4096
"""Elements that wait on the stack to be blended across."""

FEW = 4
"""Channels of a pixel up to which a kernel is made for their number."""

_FIELDS = (
    "x", "y", "rows", "columns", "down", "across", "images", "height", "width", "channels", "out_height", "out_width",
    "x_image", "x_row", "x_pitch", "y_image", "y_row", "y_pitch", "zero",
)  # fmt: skip


@register_jitable
def _blend_floats(x: Any, corners: Any, below: Any, beside: Any, y: Any, start: Any, channels: Any, zero: Any) -> None:
    """Term by term, in TFLite's order."""
    a, b, c, d = corners
    one = np.float32(1)
    above, before = one - below, one - beside
    for k in range(channels):
        total = np.float32(x[at(a + k)]) * above * before + np.float32(x[at(c + k)]) * below * before
        total = total + np.float32(x[at(b + k)]) * above * beside + np.float32(x[at(d + k)]) * below * beside
        y[at(start + k)] = np.int32(total + np.float32(0.5))


def _rounding_of(mode: Mode, shift: int, kind: Any) -> Any:
    """What divides sums of a kind by 2^shift."""
    half = (1 << shift) >> 1

    @register_jitable
    def rounded(sums):
        if mode == "even":
            return round_shift(sums, shift, True)
        if mode == "away":
            return kind(sums + half) >> shift if sums >= 0 else -(kind(half - sums) >> shift)
        if mode == "zero":
            return sums >> shift if sums >= 0 else -(-sums >> shift)
        return kind(sums + half) >> shift

    return rounded


def _blend_of(mode: Mode, bits: int, kind: Any) -> Any:
    """What makes one pixel of its four neighbours, in sums of a kind."""
    rounded = _rounding_of(mode, 2 * bits, kind)

    @register_jitable
    def blend(x, corners, below, beside, y, start, channels, zero):
        a, b, c, d = corners
        one = np.int64(1) << bits
        wa, wb = kind((one - below) * (one - beside)), kind((one - below) * beside)
        wc, wd = kind(below * (one - beside)), kind(below * beside)
        zero = kind(zero)
        for k in range(channels):
            above = kind(wa * kind(x[at(a + k)] - zero)) + kind(wb * kind(x[at(b + k)] - zero))
            beneath = kind(wc * kind(x[at(c + k)] - zero)) + kind(wd * kind(x[at(d + k)] - zero))
            y[at(start + k)] = rounded(kind(above + beneath)) + zero

    return _blend_floats if mode == "float" else blend


def _blend_twice_of(mode: Mode, bits: int, kind: Any) -> Any:
    """What makes neighbouring pixels of two rows whose pixels lie side by side: downwards first, then across.

    Whether it did: not where more pixels would be blended downwards than there are results, or too many.
    """
    rounded = _rounding_of(mode, 2 * bits, kind)

    @register_jitable
    def blend_twice(x, upper, lower, below, columns, across, first, last, y, pitch, channels, zero):
        blended = stack_array(_BLENDED, kind)
        low, high = columns[2 * first], columns[2 * first]
        for column in range(2 * first, 2 * last):
            low, high = min(low, columns[at(column)]), max(high, columns[at(column)])
        count = (high + 1 - low) * channels
        if count > _BLENDED or high + 1 - low > last - first:
            return False
        one = np.int64(1) << bits
        over, under, zero = kind(one - below), kind(below), kind(zero)
        start, end = upper + low * channels, lower + low * channels
        for i in range(count):
            blended[at(i)] = kind(over * kind(x[at(start + i)] - zero)) + kind(under * kind(x[at(end + i)] - zero))
        for column in range(first, last):
            left, right = (columns[at(2 * column)] - low) * channels, (columns[at(2 * column + 1)] - low) * channels
            before, beside, place = kind(one - across[at(column)]), kind(across[at(column)]), column * pitch
            for k in range(channels):
                sums = kind(kind(before * blended[at(left + k)]) + kind(beside * blended[at(right + k)]))
                y[at(place + k)] = rounded(sums) + zero
        return True

    return blend_twice


@makes_kernels
def resize_linear_kernel(x: Literal["u1", "i2"], mode: Mode, bits: int, few: int = 0) -> Kernel:
    """``y = round(weighted mean of 4 neighbours)``; `few` says how many channels there are, or 0 for any number.

    `rows` (int64[out_height, 2]) and `columns` (int64[out_width, 2]) hold two source indices, `down` and `across` the
    weights of the second ones: int64 in units of 2^-bits, or float32. Ties are counted from `zero`.
    """
    element, item = np.dtype(x).type, np.dtype(x).itemsize
    kind: Any = np.int32 if 8 * item + 2 * bits < 30 else np.int64  # of the sums; a known shift keeps them in 32 bits
    blend, weight = _blend_of(mode, bits, kind), np.float32 if mode == "float" else np.int64
    blend_twice = None if mode == "float" else _blend_twice_of(mode, bits, kind)

    def resize(args, bases, thread, threads):
        lines, channels = args.images * args.out_height, few or args.channels
        begin, end = share(lines, thread, threads)
        if begin >= end or args.out_width * channels == 0:
            return
        size = (args.images - 1) * args.x_image + (args.height - 1) * args.x_row + (args.width - 1) * args.x_pitch
        x = view(bases, args.x, size + channels, element)
        rows = view(bases, args.rows, 2 * args.out_height, np.int64)
        columns = view(bases, args.columns, 2 * args.out_width, np.int64)
        down, across = view(bases, args.down, args.out_height, weight), view(bases, args.across, args.out_width, weight)
        for line in range(begin, end):
            image, row = line // args.out_height, line % args.out_height
            upper = image * args.x_image + rows[2 * row] * args.x_row
            lower = image * args.x_image + rows[2 * row + 1] * args.x_row
            place = args.y + (image * args.y_image + row * args.y_row) * item
            y = view(bases, place, (args.out_width - 1) * args.y_pitch + channels, element)
            for first in range(0, args.out_width, _COLUMNS):
                last = min(first + _COLUMNS, args.out_width)
                if blend_twice is not None and args.x_pitch == channels:
                    pitch, zero = args.y_pitch, args.zero
                    if blend_twice(x, upper, lower, down[row], columns, across, first, last, y, pitch, channels, zero):
                        continue
                for column in range(first, last):
                    left, right = columns[2 * column] * args.x_pitch, columns[2 * column + 1] * args.x_pitch
                    corners = upper + left, upper + right, lower + left, lower + right
                    blend(x, corners, down[row], across[column], y, column * args.y_pitch, channels, args.zero)

    return Kernel(
        f"resize_linear.{x}.{bits}.{mode}{f'.{few}' if few else ''}", record(**dict.fromkeys(_FIELDS, "i8")), resize
    )
