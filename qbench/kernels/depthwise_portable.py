"""Depthwise convolution in plain Python."""

from typing import Any

import numpy as np

from qbench.kernels.memory import view
from qbench.kernels.rounding import rescale_one
from qbench.kernels.split import share
from qbench.kernels.stack import stack_array

_CHUNK = 128
"""Channels at a time."""


def depthwise_portable(args: Any, bases: Any, thread: int, threads: int) -> None:
    """What :func:`qbench.kernels.depthwise.depthwise_kernel` does; the weights lie as [taps, channels]."""
    channels = args.channels
    weights = view(bases, args.weights, args.kernel_y * args.kernel_x * channels, np.int16)
    bias = view(bases, args.bias, channels, np.int64)
    mantissa = view(bases, args.mantissa, channels, np.int32)
    shift = view(bases, args.shift, channels, np.int32)
    multiplier = view(bases, args.multiplier, channels, np.float32)
    pad = np.int64(view(bases, args.zeros, 1, np.uint8)[0])
    sums = stack_array(_CHUNK, np.int64)
    chunks = (channels + _CHUNK - 1) // _CHUNK
    for unit in range(*share(args.images * args.out_height * args.out_width * chunks, thread, threads)):
        pixel, first = unit // chunks, unit % chunks * _CHUNK
        line, ox = pixel // args.out_width, pixel % args.out_width
        image, oy = line // args.out_height, line % args.out_height
        count = min(_CHUNK, channels - first)
        for c in range(count):
            sums[c] = bias[first + c]
        for ky in range(args.kernel_y):
            for kx in range(args.kernel_x):
                iy = oy * args.stride_y - args.top + ky * args.dilation_y
                ix = ox * args.stride_x - args.left + kx * args.dilation_x
                taps = weights[(ky * args.kernel_x + kx) * channels + first :]
                if 0 <= iy < args.height and 0 <= ix < args.width:
                    place = args.x + image * args.image + iy * args.row + ix * args.pitch + first
                    codes = view(bases, place, count, np.uint8)
                    for c in range(count):
                        sums[c] += np.int64(codes[c]) * np.int64(taps[c])
                else:
                    for c in range(count):
                        sums[c] += pad * np.int64(taps[c])
        out = args.out + image * args.out_image + oy * args.out_row + ox * args.out_pitch + first
        codes = view(bases, out, count, np.uint8)
        for c in range(count):
            k = first + c
            value = rescale_one(sums[c], mantissa[k], shift[k], multiplier[k], args.rounding)
            codes[c] = min(max(value + args.zero_point, args.low), args.high)
