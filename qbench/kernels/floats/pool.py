"""Maxima and means over windows of channels-last images."""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
from numba.extending import register_jitable

from qbench.kernels.floats.storage import FloatType, storage
from qbench.kernels.kernel import Kernel, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import view
from qbench.kernels.split import share

__all__ = ["pool_kernel"]

_CHUNK = 256  # channels at a time: their results stay in the L1 cache while the window is walked


@register_jitable
def _inside(start, step, taps, low, high):
    """First tap (inclusive) and last (exclusive) that lie in low..high, of those at start, start + step..."""
    first = max((low - start + step - 1) // step, 0)
    last = min((high - start + step - 1) // step, taps)
    return first, max(first, last)


@cache
def pool_kernel(kind: Literal["max", "average"], dtype: FloatType, level: Level) -> Kernel:
    """Pooling.

    Returns
    -------
    Kernel
        Its fields are x and y, the references; images, height, width, channels, out_height, out_width; the element
        strides x_image, x_row, x_pitch and y_image, y_row, y_pitch; the window kh, kw with strides sh, sw and
        dilation dh, dw, whose first tap is at -top, -left. A mean's divisor counts the taps from -before_rows to
        height + after_rows, and likewise in columns: all 0 where padding does not count.
    """
    kept, largest = storage(dtype, level), kind == "max"
    element, size, load, store = kept.dtype, kept.size, kept.load, kept.store
    lowest = np.float32(-np.inf)

    def run(args, bases, thread, threads):
        pixels = args.out_height * args.out_width
        begin, end = share(args.images * pixels, thread, threads)
        result = np.empty(_CHUNK, np.float32)
        for pixel in range(begin, end):
            image, row, column = pixel // pixels, pixel % pixels // args.out_width, pixel % args.out_width
            up, left = row * args.sh - args.top, column * args.sw - args.left
            i0, i1 = _inside(up, args.dh, args.kh, 0, args.height)
            j0, j1 = _inside(left, args.dw, args.kw, 0, args.width)
            k0, k1 = _inside(up, args.dh, args.kh, -args.before_rows, args.height + args.after_rows)
            l0, l1 = _inside(left, args.dw, args.kw, -args.before_columns, args.width + args.after_columns)
            divisor = np.float32(max((k1 - k0) * (l1 - l0), 1))
            source = image * args.x_image + up * args.x_row + left * args.x_pitch
            target = image * args.y_image + row * args.y_row + column * args.y_pitch
            for first in range(0, args.channels, _CHUNK):
                count = min(_CHUNK, args.channels - first)
                for c in range(count):
                    result[c] = lowest if largest else np.float32(0)
                for i in range(i0, i1):
                    for j in range(j0, j1):
                        at = source + i * args.dh * args.x_row + j * args.dw * args.x_pitch + first
                        x = view(bases, args.x + at * size, count, element)
                        for c in range(count):
                            value = load(x, c)
                            result[c] = max(result[c], value) if largest else result[c] + value
                y = view(bases, args.y + (target + first) * size, count, element)
                for c in range(count):
                    store(y, c, result[c] if largest else np.divide(result[c], divisor))

    names = (
        "x y images height width channels out_height out_width x_image x_row x_pitch y_image y_row y_pitch "
        "kh kw sh sw dh dw top left before_rows after_rows before_columns after_columns"
    )
    return Kernel(f"float.pool.{kind}.{kept.name}", record(**dict.fromkeys(names.split(), "i8")), run)
