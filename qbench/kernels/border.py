"""Where real numbers become integers and back, with the change of layout that a model's borders need."""

from functools import cache
from typing import Any, Literal

import numpy as np

from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import share
from qbench.kernels.stack import stack_array
from qbench.quant.arithmetic import Ties

QUANTIZE = {"scale": "f4", "zero_point": "i4", "low": "i4", "high": "i4"}
"""Scale in float32; zero point and clamp in the integers that are stored."""

_PIXELS = 256
"""That are quantized at a time, one colour after the other, and then put beside each other."""
_CODES = 3 * _PIXELS


@register_jitable
def _even(x: Any) -> Any:
    return np.int32(np.rint(x))


@register_jitable
def _away(x: Any) -> Any:
    whole = np.int32(x)
    rest = x - np.float32(whole)  # exact
    return whole + np.int32(rest >= np.float32(0.5)) - np.int32(rest <= np.float32(-0.5))


@cache
def _step(ties: Ties) -> Any:
    """``saturate(round(x / scale) + zero_point)``; the clamp comes first, where nothing can overflow."""
    nearest = _even if ties == "even" else _away

    @register_jitable
    def step(x: Any, scale: Any, zero_point: Any, low: Any, high: Any) -> Any:
        return nearest(min(max(x / scale, np.float32(low - zero_point)), np.float32(high - zero_point))) + zero_point

    return step


@makes_kernels
def quantize_kernel(out: Literal["u1", "i2"], ties: Ties) -> Kernel:
    """float32 to integers of type `out`: `rows` of `count` neighbours, `x_pitch` and `out_pitch` elements apart."""
    dtype, step = np.dtype(out).type, _step(ties)

    def quantize(args, bases, thread, threads):
        scale, zero_point = np.float32(args.scale), np.int32(args.zero_point)
        low, high = np.int32(args.low), np.int32(args.high)
        rows, count, x_pitch, out_pitch = args.rows, args.count, args.x_pitch, args.out_pitch
        first, end = share(rows * count, thread, threads, 64)
        if first == end:
            return
        x = view(bases, args.x, rows * x_pitch - x_pitch + count, np.float32)
        out = view(bases, args.out, rows * out_pitch - out_pitch + count, dtype)
        while first < end:
            row, column = first // count, first % count
            length = min(end - first, count - column)
            a, b = row * x_pitch + column, row * out_pitch + column
            source, target = x[a : a + length], out[b : b + length]
            for i in range(length):
                target[i] = step(source[i], scale, zero_point, low, high)
            first += length

    sizes = dict.fromkeys(("x", "out", "rows", "count", "x_pitch", "out_pitch"), "i8")
    return Kernel(f"quantize.{out}.{ties}", record(**sizes, **QUANTIZE), quantize)


@makes_kernels
def quantize_image_kernel(out: Literal["u1", "i2"], ties: Ties) -> Kernel:
    """float32 [n, c, h, w] to integers [n, top + h + bottom, left + w + right, c], zero points around the image.

    Pixels lie `pitch` elements apart, rows `row` and images `image`.
    """
    dtype, step = np.dtype(out).type, _step(ties)

    def quantize_image(args, bases, thread, threads):
        scale, zero_point = np.float32(args.scale), np.int32(args.zero_point)
        low, high = np.int32(args.low), np.int32(args.high)
        n, c, h, w, pitch = args.n, args.c, args.h, args.w, args.pitch
        top, left, height, width = args.top, args.left, args.top + h + args.bottom, args.left + w + args.right
        first, end = share(n * height, thread, threads)
        if first == end:
            return
        x = view(bases, args.x, n * c * h * w, np.float32)
        out = view(bases, args.out, (n - 1) * args.image + (height - 1) * args.row + (width - 1) * pitch + c, dtype)
        colours = stack_array(_CODES, dtype)
        for index in range(first, end):
            sample, y = index // height, index % height - top
            start = sample * args.image + (y + top) * args.row
            if y < 0 or y >= h:
                _fill(out, start, width, pitch, c, zero_point)
                continue
            _fill(out, start, left, pitch, c, zero_point)
            _fill(out, start + (left + w) * pitch, args.right, pitch, c, zero_point)
            start += left * pitch
            a = (sample * c * h + y) * w
            if c == 3 and pitch == 3:  # in two loops, both of which the compiler can make vectors of
                for column in range(0, w, _PIXELS):
                    count = min(_PIXELS, w - column)
                    for channel in range(3):
                        b = a + column + channel * h * w
                        source, target = x[b : b + count], colours[channel * _PIXELS : channel * _PIXELS + count]
                        for i in range(count):
                            target[i] = step(source[i], scale, zero_point, low, high)
                    pixels = out[start + 3 * column : start + 3 * (column + count)]
                    for i in range(count):
                        pixels[3 * i] = colours[i]
                        pixels[3 * i + 1] = colours[_PIXELS + i]
                        pixels[3 * i + 2] = colours[2 * _PIXELS + i]
                continue
            for channel in range(c):
                b = a + channel * h * w
                source, target = x[b : b + w], out[start + channel : start + channel + (w - 1) * pitch + 1]
                if pitch == 1:
                    for i in range(w):
                        target[i] = step(source[i], scale, zero_point, low, high)
                else:
                    for i in range(w):
                        target[i * pitch] = step(source[i], scale, zero_point, low, high)

    sizes = ("x", "out", "n", "c", "h", "w", "pitch", "row", "image", "top", "left", "bottom", "right")
    return Kernel(f"quantize_image.{out}.{ties}", record(**dict.fromkeys(sizes, "i8"), **QUANTIZE), quantize_image)


@register_jitable
def _fill(out: Any, start: Any, pixels: Any, pitch: Any, channels: Any, value: Any) -> None:
    rows, length = (1, pixels * pitch) if channels == pitch else (pixels, channels)
    for row in range(rows):
        for i in range(start + row * pitch, start + row * pitch + length):
            out[i] = value


@makes_kernels
def dequantize_kernel(x: Literal["u1", "i2", "i4", "i8"]) -> Kernel:
    """Integers of type `x` to float32: ``scale * (x - zero_point)`` over [outer, channels, inner].

    `scale` (float32) and `zero_point` (int32) hold one number per channel; `x_pitch` and `out_pitch` elements lie
    between one outer index and the next.
    """
    dtype = np.dtype(x).type
    wide = np.int64 if x in ("i4", "i8") else np.int32

    def dequantize(args, bases, thread, threads):
        outer, channels, inner, x_pitch, out_pitch = args.outer, args.channels, args.inner, args.x_pitch, args.out_pitch
        count = channels * inner
        first, end = share(outer * count, thread, threads, 64)
        if first == end:
            return
        x = view(bases, args.x, (outer - 1) * x_pitch + count, dtype)
        out = view(bases, args.out, (outer - 1) * out_pitch + count, np.float32)
        scale = view(bases, args.scale, channels, np.float32)
        zero_point = view(bases, args.zero_point, channels, np.int32)
        while first < end:
            row, column = first // count, first % count
            channel = column // inner
            length = min(end - first, count - column if inner == 1 else (channel + 1) * inner - column)
            a, b = row * x_pitch + column, row * out_pitch + column
            source, target = x[a : a + length], out[b : b + length]
            if inner == 1:
                factors, zeros = scale[channel : channel + length], zero_point[channel : channel + length]
                for i in range(length):
                    target[i] = np.float32(wide(source[i]) - wide(zeros[i])) * factors[i]
            else:
                factor, zero = scale[channel], wide(zero_point[channel])
                for i in range(length):
                    target[i] = np.float32(wide(source[i]) - zero) * factor
            first += length

    sizes = ("x", "out", "outer", "channels", "inner", "x_pitch", "out_pitch", "scale", "zero_point")
    return Kernel(f"dequantize.{x}", record(**dict.fromkeys(sizes, "i8")), dequantize)


@makes_kernels
def dequantize_image_kernel(x: Literal["u1", "i2", "i4", "i8"]) -> Kernel:
    """Integers [n, h, w, c] to float32 [n, c, h, w]; `scale` and `zero_point` hold one number per channel."""
    dtype = np.dtype(x).type
    wide = np.int64 if x in ("i4", "i8") else np.int32

    def dequantize_image(args, bases, thread, threads):
        n, c, h, w, pitch = args.n, args.c, args.h, args.w, args.pitch
        first, end = share(n * h, thread, threads)
        if first == end:
            return
        x = view(bases, args.x, (n - 1) * args.image + (h - 1) * args.row + (w - 1) * pitch + c, dtype)
        out = view(bases, args.out, n * c * h * w, np.float32)
        scale = view(bases, args.scale, c, np.float32)
        zero_point = view(bases, args.zero_point, c, np.int32)
        for index in range(first, end):
            sample, y = index // h, index % h
            start = sample * args.image + y * args.row
            for channel in range(c):
                factor, zero = scale[channel], wide(zero_point[channel])
                b = ((sample * c + channel) * h + y) * w
                source = x[start + channel : start + channel + (w - 1) * pitch + 1]
                target = out[b : b + w]
                for i in range(w):
                    target[i] = np.float32(wide(source[i * pitch]) - zero) * factor

    sizes = ("x", "out", "n", "c", "h", "w", "pitch", "row", "image", "scale", "zero_point")
    return Kernel(f"dequantize_image.{x}", record(**dict.fromkeys(sizes, "i8")), dequantize_image)
