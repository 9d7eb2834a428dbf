"""Exact convolutions for everything that tiles of 8-bit products do not take: wide data, wide weights, wide sums.

The sums are 64-bit integers. Where products are narrow enough, runs of them are first summed in 32 bits.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.rounding import finisher
from qbench.kernels.split import at, share
from qbench.kernels.stack import stack_array
from qbench.quant.rounding import Rounding

_CHANNELS = 64
"""Output channels that are summed at a time."""

_FIELDS = (
    "x", "y", "weights", "bias", "mantissa", "shift", "multiplier", "images", "height", "width", "out_height",
    "out_width", "groups", "channels", "depth", "x_image", "x_row", "x_pitch", "y_image", "y_row", "y_pitch", "kh",
    "kw", "sh", "sw", "dh", "dw", "top", "left", "zero", "run", "zero_point", "low", "high",
)  # fmt: skip


@register_jitable
def add_products(x, w, start, stride, count, channels, zero, run, narrow, wide):
    """Add ``sum over k of (x[k] - zero) * w[start + k * stride + c]`` to ``wide[c]``."""
    if run == 0:
        for k in range(count):
            value = np.int64(x[k]) - zero
            for c in range(channels):
                wide[c] += value * np.int64(w[at(start + k * stride + c)])
        return
    for first in range(0, count, run):
        for c in range(channels):
            narrow[c] = 0
        for k in range(first, min(first + run, count)):
            factor = np.int32(np.int32(x[k]) - np.int32(zero))
            for c in range(channels):
                narrow[c] += np.int32(factor * np.int32(w[at(start + k * stride + c)]))
        for c in range(channels):
            wide[c] += np.int64(narrow[c])


@register_jitable
def add_each(x, w, start, channels, zero, wide):
    """Add ``(x[c] - zero) * w[start + c]`` to ``wide[c]``: a depthwise convolution."""
    for c in range(channels):
        wide[c] += (np.int64(x[c]) - zero) * np.int64(w[at(start + c)])


@makes_kernels
def general_conv_kernel(
    x: Literal["u1", "i2"],
    weights: Literal["i2", "i4"],
    y: Literal["u1", "i2", "i4", "i8"],
    rounding: Rounding | None,
    plain: bool,
) -> Kernel:
    """Channels-last convolution of data less its zero point with weights that `pack_general` made.

    `channels` and `depth` count the output and input channels of one group; `bias` is int64, and it and the parameters
    of the requantize have an element for each output channel. `run` products fit 32 bits (0: not even one).
    """
    element, weight, result = np.dtype(x).type, np.dtype(weights).type, np.dtype(y).type
    element_size, result_size = np.dtype(x).itemsize, np.dtype(y).itemsize
    finish = finisher(rounding, plain)

    @register_jitable
    def add_window(args, bases, w, image, row, column, group, inner, count, narrow, wide):
        """Add the products under the window of one pixel to ``wide[c]`` for `count` channels of a group."""
        kh, kw, channels, depth, total = args.kh, args.kw, args.channels, args.depth, args.groups * args.channels
        zero, run, each = args.zero, args.run, channels == 1 and depth == 1
        for i in range(kh):
            from_row = row * args.sh - args.top + i * args.dh
            if from_row < 0 or from_row >= args.height:
                continue
            for j in range(kw):
                from_column = column * args.sw - args.left + j * args.dw
                if from_column < 0 or from_column >= args.width:
                    continue
                start = image * args.x_image + from_row * args.x_row + from_column * args.x_pitch
                if each:
                    x = view(bases, args.x + (start + inner) * element_size, count, element)
                    add_each(x, w, (i * kw + j) * total + inner, count, zero, wide)
                else:
                    x = view(bases, args.x + (start + group * depth) * element_size, depth, element)
                    place = ((group * kh + i) * kw + j) * depth * channels + inner
                    add_products(x, w, place, channels, depth, count, zero, run, narrow, wide)

    def conv(args, bases, thread, threads):
        out_height, out_width, total = args.out_height, args.out_width, args.groups * args.channels
        begin, end = share(args.images * out_height * out_width, thread, threads)
        if begin >= end:
            return
        groups, channels = args.groups, args.channels
        if channels == 1 and args.depth == 1:  # the channels of all groups at once
            groups, channels = 1, total
        w = view(bases, args.weights, total * args.kh * args.kw * args.depth, weight)
        bias, multiplier = view(bases, args.bias, total, np.int64), view(bases, args.multiplier, total, np.float32)
        mantissa, shift = view(bases, args.mantissa, total, np.int32), view(bases, args.shift, total, np.int32)
        narrow, wide = stack_array(_CHANNELS, np.int32), stack_array(_CHANNELS, np.int64)
        zero_point, low, high = args.zero_point, args.low, args.high
        chunks = (channels + _CHANNELS - 1) // _CHANNELS
        for pixel in range(begin, end):
            line, column = pixel // out_width, pixel % out_width
            image, row = line // out_height, line % out_height
            for part in range(groups * chunks):
                group, inner = part // chunks, part % chunks * _CHANNELS
                count, first = min(_CHANNELS, channels - inner), group * channels + inner
                for c in range(count):
                    wide[c] = bias[at(first + c)]
                add_window(args, bases, w, image, row, column, group, inner, count, narrow, wide)
                target = image * args.y_image + row * args.y_row + column * args.y_pitch + first
                y = view(bases, args.y + target * result_size, count, result)
                for c in range(count):
                    k = at(first + c)
                    y[c] = finish(wide[c], mantissa[k], shift[k], multiplier[k], zero_point, low, high)

    name = f"general_conv.{x}.{weights}.{y}.{rounding}{'.plain' if plain else ''}"
    return Kernel(name, record(**dict.fromkeys(_FIELDS, "i8")), conv)


def pack_general(weights: NDArray[Any], groups: int) -> NDArray[Any]:
    """Weights less their zero points, [out, in / groups, kh, kw], as `general_conv_kernel` reads them.

    Returns
    -------
    int16, or int32 where they need it: [groups, kh, kw, in / groups, out / groups], or [kh, kw, groups] where each
    group has one channel.
    """
    out, depth, kh, kw = weights.shape
    wide = max(-int(weights.min(initial=0)) - 1, int(weights.max(initial=0))) >= 2**15
    packed = weights.astype(np.int32 if wide else np.int16)
    if depth == 1 and out == groups:
        return np.ascontiguousarray(packed.reshape(out, kh, kw).transpose(1, 2, 0))
    return np.ascontiguousarray(packed.reshape(groups, out // groups, depth, kh, kw).transpose(0, 3, 4, 2, 1))
