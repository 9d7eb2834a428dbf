"""Quantizing by the range that data have at run time: range, integers, and products back to real numbers.

Each of several samples has a range of its own. A sample is searched in pieces, whose least and largest elements stay
(float32[samples, pieces, 2]); what comes after puts them together, so that all threads find the same scale.
"""

from typing import Any

import numpy as np

from qbench.kernels.floats.rows import largest, smallest
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import at, share

PIECES = 16
"""Of a sample."""


@register_jitable
def _scale(ranges: Any) -> Any:
    """Scale and zero point of uint8 by the least and the largest element of each piece; see `DynamicQuantize`."""
    low, high = np.float32(0), np.float32(0)
    for piece in range(PIECES):
        low, high = min(low, ranges[2 * piece]), max(high, ranges[2 * piece + 1])
    return scale_of(low, high)


@register_jitable
def scale_of(low: Any, high: Any) -> Any:
    """Scale and zero point of uint8 for numbers from `low` to `high`, between which 0 lies."""
    scale = np.float32(1) if low == high else np.float32(np.float32(high - low) / np.float32(255))
    zero_point = np.rint(min(max(np.float32(-low / scale), np.float32(0)), np.float32(255)))
    return scale, np.float32(zero_point)


@makes_kernels
def range_kernel() -> Kernel:
    """The least and the largest of 0 and the elements of each piece of `samples` of `count` float32 each."""

    def find(args: Any, bases: Any, thread: int, threads: int) -> None:
        samples, count = args.samples, args.count
        size = (count + PIECES - 1) // PIECES
        begin, end = share(samples * PIECES, thread, threads)
        for unit in range(begin, end):
            first = min(unit % PIECES * size, count)
            length = min(size, count - first)
            x = view(bases, args.x + 4 * (unit // PIECES * count + first), length, np.float32)
            found = view(bases, args.ranges + 8 * unit, 2, np.float32)
            found[0], found[1] = min(np.float32(0), smallest(x)), max(np.float32(0), largest(x))

    return Kernel("by_range.range", record(**dict.fromkeys(("x", "ranges", "samples", "count"), "i8")), find)


@register_jitable
def round_all(x: Any, scale: Any, zero_point: Any, out: Any) -> None:
    """The nearest of 256 real numbers for each."""
    low, high = np.float32(-zero_point), np.float32(np.float32(255) - zero_point)
    for i in range(len(x)):
        out[at(i)] = np.rint(min(max(np.float32(x[at(i)] / scale), low), high)) * scale


@makes_kernels
def rounded_kernel() -> Kernel:
    """The real numbers that the integers of one sample of `count` float32 stand for."""

    def turn(args: Any, bases: Any, thread: int, threads: int) -> None:
        first, end = share(args.count, thread, threads, 64)
        scale, zero_point = _scale(view(bases, args.ranges, 2 * PIECES, np.float32))
        x = view(bases, args.x + 4 * first, end - first, np.float32)
        round_all(x, scale, zero_point, view(bases, args.out + 4 * first, end - first, np.float32))

    return Kernel("by_range.rounded", record(**dict.fromkeys(("x", "out", "ranges", "count"), "i8")), turn)


@makes_kernels
def dynamic_codes_kernel() -> Kernel:
    """uint8 integers of `samples` of `count` float32 each."""

    def quantize(args: Any, bases: Any, thread: int, threads: int) -> None:
        samples, count = args.samples, args.count
        position, end = share(samples * count, thread, threads, 64)
        while position < end:
            sample = position // count
            start = position - sample * count
            length = min(count - start, end - position)
            scale, zero_point = _scale(view(bases, args.ranges + 8 * PIECES * sample, 2 * PIECES, np.float32))
            low, high = np.float32(-zero_point), np.float32(np.float32(255) - zero_point)
            x = view(bases, args.x + 4 * position, length, np.float32)
            out = view(bases, args.out + position, length, np.uint8)
            zero = np.int32(zero_point)
            for i in range(length):
                steps = np.rint(min(max(np.float32(x[at(i)] / scale), low), high))
                out[at(i)] = np.uint8(np.int32(steps) + zero)
            position += length

    names = ("x", "out", "ranges", "samples", "count")
    return Kernel("by_range.quantize", record(**dict.fromkeys(names, "i8")), quantize)


@makes_kernels
def scaled_kernel() -> Kernel:
    """``float32(sum - zero_point * weight_sum) * (scale * weight_scale) + bias``, clamped, in place of int32 sums.

    The sums are of codes; `rows` of `channels` each make a sample.
    """

    def finish(args: Any, bases: Any, thread: int, threads: int) -> None:
        rows, channels = args.rows, args.channels
        begin, end = share(args.samples * rows, thread, threads)
        if begin == end:
            return
        weight_sums = view(bases, args.weight_sums, channels, np.int32)
        weight_scales, bias = (
            view(bases, args.weight_scales, channels, np.float32),
            view(bases, args.bias, channels, np.float32),
        )
        low, high = np.float32(args.low), np.float32(args.high)
        sample, scale, zero = -1, np.float32(0), np.int32(0)
        for row in range(begin, end):
            if row // rows != sample:
                sample = row // rows
                found = _scale(view(bases, args.ranges + 8 * PIECES * sample, 2 * PIECES, np.float32))
                scale, zero = found[0], np.int32(found[1])
            y = view(bases, args.y + 4 * row * channels, channels, np.float32)
            sums = y.view(np.int32)
            for c in range(channels):
                total = np.int32(sums[at(c)] - np.int32(zero * weight_sums[at(c)]))
                made = np.float32(np.float32(total) * np.float32(scale * weight_scales[at(c)])) + bias[at(c)]
                y[at(c)] = min(max(np.float32(made), low), high)

    names = ("y", "ranges", "weight_sums", "weight_scales", "bias", "samples", "rows", "channels")
    return Kernel("by_range.scaled", record(**dict.fromkeys(names, "i8"), low="f4", high="f4"), finish)


@makes_kernels
def parameters_kernel() -> Kernel:
    """The scale (float32) and the zero point (uint8) of one sample whose range was found."""

    def write(args: Any, bases: Any, thread: int, threads: int) -> None:
        if thread == 0:
            found = _scale(view(bases, args.ranges, 2 * PIECES, np.float32))
            view(bases, args.scale, 1, np.float32)[0] = found[0]
            view(bases, args.zero_point, 1, np.uint8)[0] = np.uint8(np.int32(found[1]))

    return Kernel("by_range.parameters", record(**dict.fromkeys(("ranges", "scale", "zero_point"), "i8")), write)


@makes_kernels
def fill_kernel() -> Kernel:
    """The zero point, a code, all over `count` bytes."""

    def fill(args: Any, bases: Any, thread: int, threads: int) -> None:
        first, end = share(args.count, thread, threads, 64)
        zero = view(bases, args.zero_point, 1, np.uint8)[0]
        out = view(bases, args.out + first, end - first, np.uint8)
        for i in range(end - first):
            out[at(i)] = zero

    return Kernel("by_range.fill", record(**dict.fromkeys(("out", "count", "zero_point"), "i8")), fill)


@register_jitable
def _centred(total: Any, zero: Any, data: Any, weight_sum: Any, weight_zero: Any) -> Any:
    return np.int32(total - np.int32(np.int32(zero * weight_sum) + np.int32(data * weight_zero)))


@register_jitable
def _centre_row(sums: Any, zero: Any, data: Any, weights: Any, reals: Any, y: Any) -> None:
    weight_sums, weight_zeros = weights
    for c in range(len(y)):
        y[at(c)] = _centred(sums[at(c)], zero, data, weight_sums[at(c)], weight_zeros[at(c)])


@register_jitable
def _make_real_row(sums: Any, zero: Any, data: Any, weights: Any, reals: Any, y: Any) -> None:
    (weight_sums, weight_zeros), (scale, bias, low, high) = weights, reals
    if len(scale) == 1:
        one = scale[0]
        for c in range(len(y)):
            integer = _centred(sums[at(c)], zero, data, weight_sums[at(c)], weight_zeros[at(c)])
            y[at(c)] = min(max(np.float32(np.float32(np.float32(integer) * one) + bias[at(c)]), low), high)
    else:
        for c in range(len(y)):
            integer = _centred(sums[at(c)], zero, data, weight_sums[at(c)], weight_zeros[at(c)])
            y[at(c)] = min(max(np.float32(np.float32(np.float32(integer) * scale[at(c)]) + bias[at(c)]), low), high)


@makes_kernels
def centred_kernel(real: bool) -> Kernel:
    """Products less zero points of int32 sums of codes: ``sum - x_zero * weight_sum - weight_zero * x_sum``.

    Each row has `width` sums for `channels` results: where weights have zero points, the last one is of the `depth`
    codes alone, so that `x_sum` is that less x_zero for each; else the sums lie where results will. If `real`, these
    are made float32, multiplied by the `scales` (one for all channels, or one for each), added to `bias` and
    clamped.
    """
    kind, finish_row = (np.float32, _make_real_row) if real else (np.int32, _centre_row)

    def finish(args: Any, bases: Any, thread: int, threads: int) -> None:
        width, channels = args.width, args.channels
        zero = np.int32(view(bases, args.zero_point, 1, np.uint8)[0])
        weights = (
            view(bases, args.weight_sums, channels, np.int32),
            view(bases, args.weight_zeros, channels, np.int32),
        )
        reals = (
            view(bases, args.scale, args.scales, np.float32),
            view(bases, args.bias, channels, np.float32),
            np.float32(args.low),
            np.float32(args.high),
        )
        begin, end = share(args.rows, thread, threads)
        for row in range(begin, end):
            y = view(bases, args.y + 4 * row * channels, channels, kind)
            if width > channels:
                sums = view(bases, args.sums + 4 * row * width, width, np.int32)
                data = np.int32(sums[at(channels)] - np.int32(zero * np.int32(args.depth)))
                finish_row(sums, zero, data, weights, reals, y)
            else:  # of one pointer the compiler sees that each element is read before it is written
                finish_row(y.view(np.int32), zero, np.int32(0), weights, reals, y)

    names = ("sums", "y", "zero_point", "weight_sums", "weight_zeros", "rows", "width", "depth", "channels")
    fields = dict.fromkeys((*names, "scale", "scales", "bias"), "i8")
    return Kernel(f"by_range.centred.{kind.__name__}", record(**fields, low="f4", high="f4"), finish)
