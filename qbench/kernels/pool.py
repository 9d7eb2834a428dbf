"""Maxima and sums over the windows of channels-last images of integers."""

from itertools import product
from typing import Any, Literal

import numpy as np
from llvmlite import ir

from qbench.kernels.epilogue import Codes, Output, VectorCodes
from qbench.kernels.isa import ISAS, Element, Isa
from qbench.kernels.isa.emit import I8, I32, I64, at, call, load, pointer, splat, vector
from qbench.kernels.jit import cgutils, intrinsic, register_jitable, types
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import address_of, view
from qbench.kernels.rescale import RESCALES
from qbench.kernels.rounding import PARAMETERS, finisher
from qbench.kernels.rows import loop, store_codes
from qbench.kernels.split import at as index
from qbench.kernels.split import share
from qbench.kernels.stack import stack_array
from qbench.quant.rounding import Rounding

_WINDOW = dict.fromkeys(
    ("x", "y", "images", "height", "width", "channels", "out_height", "out_width", "x_image", "x_row", "x_pitch",
     "y_image", "y_row", "y_pitch", "kh", "kw", "sh", "sw", "dh", "dw", "top", "left"),
    "i8",
)  # fmt: skip
"""References, sizes, strides in elements; the window kh, kw moves by sh, sw, its taps lie dh, dw apart, and the first
one of the first window is at -top, -left."""

_ENDS = dict.fromkeys(("scales", "zero_point", "low", "high"), "i8")
"""The same for vector code."""

_CHUNK = 128
"""Channels at a time: their sums stay in registers or the L1 cache while the window is walked."""


@register_jitable
def _inside(start: Any, step: Any, taps: Any, size: Any) -> Any:
    """First and last + 1 of the taps at start, start + step... that lie in 0..size."""
    if step == 1:  # divisions take longer than small windows
        first = max(-start, 0)
        return first, max(first, min(size - start, taps))
    first = max((step - 1 - start) // step, 0)
    return first, max(first, min((size - start + step - 1) // step, taps))


@makes_kernels
def max_pool_kernel(level: Level, x: Literal["u1", "i2"]) -> Kernel:
    """The maximum of each window; padding never wins, a window of nothing else gives `lowest`."""
    name, take = f"max_pool.{x}", _max_plain(x)
    if level in ISAS:
        name, take = f"max_pool.{level}.{x}", _max_vectors(ISAS[level], x)

    def pool(args, bases, thread, threads):
        begin, end = share(args.images * args.out_height, thread, threads)
        for line in range(begin, end):
            image, row = line // args.out_height, line % args.out_height
            up = row * args.sh - args.top
            i0, i1 = _inside(up, args.dh, args.kh, args.height)
            for column in range(args.out_width):
                left = column * args.sw - args.left
                j0, j1 = _inside(left, args.dw, args.kw, args.width)
                source = image * args.x_image + (up + i0 * args.dh) * args.x_row + (left + j0 * args.dw) * args.x_pitch
                target = image * args.y_image + row * args.y_row + column * args.y_pitch
                rows, columns = (i1 - i0, j1 - j0) if j1 > j0 else (0, 0)
                take(bases, args, source, rows, columns, target)

    return Kernel(name, record(**_WINDOW, lowest="i8"), pool)


@register_jitable
def _window(args, line, column):
    """Where a window's first tap inside of its image lies, how many rows and columns of taps do, and its result."""
    image, row = line // args.out_height, line % args.out_height
    up, left = row * args.sh - args.top, column * args.sw - args.left
    i0, i1 = _inside(up, args.dh, args.kh, args.height)
    j0, j1 = _inside(left, args.dw, args.kw, args.width)
    source = image * args.x_image + (up + i0 * args.dh) * args.x_row + (left + j0 * args.dw) * args.x_pitch
    return source, i1 - i0, j1 - j0, image * args.y_image + row * args.y_row + column * args.y_pitch


@makes_kernels
def average_pool_kernel(x: Literal["u1", "i2"]) -> Kernel:
    """The clamped mean of each window's elements, padding left out: of them less `zero`, ties away from zero."""
    dtype, size = np.dtype(x).type, np.dtype(x).itemsize

    def pool(args, bases, thread, threads):
        begin, end = share(args.images * args.out_height, thread, threads)
        sums = stack_array(_CHUNK, np.int32)
        for line in range(begin, end):
            for column in range(args.out_width):
                source, rows, columns, target = _window(args, line, column)
                elements = max(rows * columns, 1)
                for first in range(0, args.channels, _CHUNK):
                    count = min(_CHUNK, args.channels - first)
                    sums[:] = 0
                    for i in range(rows):
                        for j in range(columns):
                            here = source + i * args.dh * args.x_row + j * args.dw * args.x_pitch + first
                            x = view(bases, args.x + here * size, count, dtype)
                            for c in range(count):
                                sums[c] += np.int32(x[c]) - np.int32(args.zero)
                    y = view(bases, args.y + (target + first) * size, count, dtype)
                    for c in range(count):
                        mean = (abs(np.int64(sums[c])) + elements // 2) // elements
                        y[c] = min(max((mean if sums[c] >= 0 else -mean) + args.zero, args.low), args.high)

    return Kernel(f"average_pool.{x}", record(**_WINDOW, zero="i8", low="i8", high="i8"), pool)


@makes_kernels
def real_average_pool_kernel() -> Kernel:
    """The mean of what 8-bit codes stand for, in codes again: bits of `qbench.ops.onnx.pool`.

    `reals` holds 256 float32, `counts` the number of elements in each window. Sums are float32, row by row.
    """

    def pool(args, bases, thread, threads):
        begin, end = share(args.images * args.out_height, thread, threads)
        sums = stack_array(_CHUNK, np.float32)
        reals = view(bases, args.reals, 256, np.float32)
        counts = view(bases, args.counts, args.out_height * args.out_width, np.float32)
        for line in range(begin, end):
            for column in range(args.out_width):
                source, rows, columns, target = _window(args, line, column)
                elements = counts[line % args.out_height * args.out_width + column]
                for first in range(0, args.channels, _CHUNK):
                    count = min(_CHUNK, args.channels - first)
                    sums[:] = 0
                    for i in range(rows):
                        for j in range(columns):
                            here = source + i * args.dh * args.x_row + j * args.dw * args.x_pitch + first
                            x = view(bases, args.x + here, count, np.uint8)
                            for c in range(count):
                                sums[index(c)] += reals[index(x[index(c)])]
                    y = view(bases, args.y + target + first, count, np.uint8)
                    for c in range(count):
                        steps = np.rint(sums[index(c)] / elements / args.step + args.zero_point)
                        y[index(c)] = np.int64(min(max(steps, args.low), args.high)) + args.flip

    ends = {"step": "f4", "zero_point": "f4", "low": "f4", "high": "f4", "flip": "i8"}
    return Kernel("real_average_pool", record(**_WINDOW, reals="i8", counts="i8", **ends), pool)


def _max_plain(x: str) -> Any:
    dtype = np.dtype(x).type
    size = np.dtype(x).itemsize

    @register_jitable
    def take(bases, args, source, rows, columns, target):
        channels = args.channels
        y = view(bases, args.y + target * size, channels, dtype)
        for c in range(channels):
            y[c] = args.lowest
        for i in range(rows):
            for j in range(columns):
                start = source + i * args.dh * args.x_row + j * args.dw * args.x_pitch
                x = view(bases, args.x + start * size, channels, dtype)
                for c in range(channels):
                    y[c] = max(y[c], x[c])

    return take


def _max_vectors(isa: Isa, element: Element) -> Any:
    largest, of_nine, of_four = (_make_largest(isa, element, unrolled) for unrolled in (0, 3, 2))
    size = np.dtype(element).itemsize

    @register_jitable
    def take(bases, args, source, rows, columns, target):
        x, y = address_of(bases, args.x) + source * size, address_of(bases, args.y) + target * size
        row_step, column_step, channels = args.dh * args.x_row * size, args.dw * args.x_pitch * size, args.channels
        if rows == 3 and columns == 3:
            of_nine(x, row_step, 3, column_step, 3, y, channels)
        elif rows == 2 and columns == 2:
            of_four(x, row_step, 2, column_step, 2, y, channels)
        else:
            largest(x, row_step, rows, column_step, columns, y, channels)

    return take


def _make_largest(isa: Isa, element: Element, unrolled: int) -> Any:
    """A Numba function: the largest of rows times columns runs of elements, at an address and steps of bytes from it.

    Where `unrolled` is not 0, it is the number of rows and of columns.
    """
    size = np.dtype(element).itemsize
    width, bits = 4 * isa.lanes // size, 8 * size
    kind = ir.VectorType(ir.IntType(bits), width)
    larger, smallest = ("umax", 0) if element == "u1" else ("smax", -(2**15))

    @intrinsic
    def largest(context, x, row_step, rows, column_step, columns, y, channels):
        def generate(context, b, signature, arguments):
            x, row_step, rows, column_step, columns, y, channels = arguments
            kept = cgutils.alloca_once(b, kind)  # a register in the end

            def include(start: Any, row: Any, column: Any) -> None:
                offset = b.add(b.mul(row, row_step), b.mul(column, column_step))
                one = load(b, at(b, start, offset), kind)
                b.store(call(b, f"llvm.{larger}.v{width}i{bits}", kind, [b.load(kept), one]), kept)

            with loop(b, channels, width) as channel:
                b.store(splat(kind, smallest), kept)
                place = b.mul(channel, I64(size))
                start = at(b, pointer(b, x), place)
                if unrolled:
                    for row, column in product(range(unrolled), repeat=2):
                        include(start, I64(row), I64(column))
                else:
                    with loop(b, rows, 1) as row, loop(b, columns, 1) as column:
                        include(start, row, column)
                store_codes(b, isa, b.load(kept), at(b, pointer(b, y), place), b.sub(channels, channel))
            return context.get_dummy_value()

        return types.void(*[types.int64] * 7), generate

    return largest


@makes_kernels
def sum_pool_codes_kernel(level: Level, kind: VectorCodes) -> Kernel:
    """`sum_pool_kernel` from codes to codes, in vectors, with an epilogue that `choose_epilogue` gives.

    `scales` are from `pack_scales` for four vectors; sums times factors fit 32 bits.
    """
    sums = _make_sums(ISAS[level], kind)
    block, scale_bytes = 4 * ISAS[level].lanes, 4 * RESCALES[kind].constants

    def pool(args, bases, thread, threads):
        chunks = (args.channels + block - 1) // block
        begin, end = share(args.images * args.out_height * chunks, thread, threads)
        factor = view(bases, args.factor, args.out_height * args.out_width, np.int64)
        scales, x, y = address_of(bases, args.scales), address_of(bases, args.x), address_of(bases, args.y)
        row_step, column_step = args.dh * args.x_row, args.dw * args.x_pitch
        for unit in range(begin, end):
            line, first = unit // chunks, unit % chunks * block
            image, row = line // args.out_height, line % args.out_height
            up = row * args.sh - args.top
            i0, i1 = _inside(up, args.dh, args.kh, args.height)
            for column in range(args.out_width):
                left = column * args.sw - args.left
                j0, j1 = _inside(left, args.dw, args.kw, args.width)
                source = x + image * args.x_image + (up + i0 * args.dh) * args.x_row
                source += (left + j0 * args.dw) * args.x_pitch + first
                target = y + image * args.y_image + row * args.y_row + column * args.y_pitch + first
                start, scale = -args.zero * (i1 - i0) * (j1 - j0), factor[row * args.out_width + column]
                operands = scales + scale_bytes * first, args.zero_point, args.low, args.high
                channels = args.channels - first
                sums(source, row_step, i1 - i0, column_step, j1 - j0, start, scale, target, channels, operands)

    return Kernel(f"sum_pool.{level}.{kind}", record(**_WINDOW, **_ENDS, zero="i8", factor="i8"), pool)


def _make_sums(isa: Isa, kind: VectorCodes) -> Any:
    """A Numba function: the sums of rows times columns runs of codes, four vectors of them, with their epilogue."""
    quarter = ir.VectorType(I8, isa.lanes)

    @intrinsic
    def sums(context, x, row_step, rows, column_step, columns, start, scale, y, channels, operands):
        def generate(context, b, signature, arguments):
            x, row_step, rows, column_step, columns, start, scale, y, channels, packed = arguments
            kept = [cgutils.alloca_once(b, isa.accumulator) for _ in range(4)]  # registers in the end
            for one in kept:
                b.store(vector(b, isa.accumulator, b.trunc(start, I32)), one)
            with loop(b, rows, 1) as row, loop(b, columns, 1) as column:
                place = at(b, pointer(b, x), b.add(b.mul(row, row_step), b.mul(column, column_step)))
                for v, one in enumerate(kept):
                    wide = b.zext(load(b, place, quarter, v * isa.lanes), isa.accumulator)
                    b.store(b.add(b.load(one), wide), one)
            scales = vector(b, isa.accumulator, b.trunc(scale, I32))
            totals = [b.mul(b.load(one), scales) for one in kept]
            operands = [b.extract_value(packed, i) for i in range(len(signature.args[-1]))]
            Codes(kind).emit(b, isa, [totals], operands, Output(pointer(b, y), I64(0), I64(1), channels))
            return context.get_dummy_value()

        return types.void(*[types.int64] * 9, operands), generate

    return sums


@makes_kernels
def sum_pool_kernel(
    x: Literal["u1", "i2"], y: Literal["u1", "i2", "i4", "i8"], rounding: Rounding | None, plain: bool
) -> Kernel:
    """``requantized(sum over the window of (x - zero) * factor)``, where padding is as zero.

    ``factor`` (int64[out_height, out_width]) makes up for windows that count fewer elements; see `integer.sum_pool2d`.
    """
    element, result, finish = np.dtype(x).type, np.dtype(y).type, finisher(rounding, plain)
    element_size, result_size = np.dtype(x).itemsize, np.dtype(y).itemsize

    def pool(args, bases, thread, threads):
        pixels, channels = args.out_height * args.out_width, args.channels
        chunks = (channels + _CHUNK - 1) // _CHUNK
        begin, end = share(args.images * pixels * chunks, thread, threads)
        if begin >= end:
            return
        sums = stack_array(_CHUNK, np.int64)
        factor = view(bases, args.factor, pixels, np.int64)
        mantissa, shift = view(bases, args.mantissa, channels, np.int32), view(bases, args.shift, channels, np.int32)
        multiplier = view(bases, args.multiplier, channels, np.float32)
        zero_point, low, high, zero = args.zero_point, args.low, args.high, args.zero
        for unit in range(begin, end):
            pixel, first = unit // chunks, unit % chunks * _CHUNK
            image, row, column = pixel // pixels, pixel % pixels // args.out_width, pixel % args.out_width
            up, left = row * args.sh - args.top, column * args.sw - args.left
            i0, i1 = _inside(up, args.dh, args.kh, args.height)
            j0, j1 = _inside(left, args.dw, args.kw, args.width)
            source = image * args.x_image + up * args.x_row + left * args.x_pitch + first
            target = image * args.y_image + row * args.y_row + column * args.y_pitch + first
            count = min(_CHUNK, channels - first)
            for c in range(count):
                sums[c] = -zero * (i1 - i0) * (j1 - j0)
            for i in range(i0, i1):
                for j in range(j0, j1):
                    start = source + i * args.dh * args.x_row + j * args.dw * args.x_pitch
                    x = view(bases, args.x + start * element_size, count, element)
                    for c in range(count):
                        sums[c] += np.int64(x[c])
            y = view(bases, args.y + target * result_size, count, result)
            scale = factor[pixel % pixels]
            for c in range(count):
                k = index(first + c)
                y[c] = finish(sums[c] * scale, mantissa[k], shift[k], multiplier[k], zero_point, low, high)

    name = f"sum_pool.{x}.{y}.{rounding}{'.plain' if plain else ''}"
    return Kernel(name, record(**_WINDOW, **PARAMETERS, zero="i8", factor="i8"), pool)


@makes_kernels
def sum_kernel(
    x: Literal["u1", "i2", "i4"], y: Literal["u1", "i2", "i4", "i8"], rounding: Rounding | None, plain: bool
) -> Kernel:
    """``requantized(sum over the middle axis of (x - zero))`` of [outer, middle, inner], parameters along `inner`.

    `x_outer`, `x_middle` and `y_outer` are the elements from one index to the next.
    """
    element, result, finish = np.dtype(x).type, np.dtype(y).type, finisher(rounding, plain)
    element_size, result_size = np.dtype(x).itemsize, np.dtype(y).itemsize

    def total(args, bases, thread, threads):
        inner, middle = args.inner, args.middle
        chunks = (inner + _CHUNK - 1) // _CHUNK
        begin, end = share(args.outer * chunks, thread, threads)
        if begin >= end:
            return
        sums = stack_array(_CHUNK, np.int64)
        mantissa, shift = view(bases, args.mantissa, inner, np.int32), view(bases, args.shift, inner, np.int32)
        multiplier = view(bases, args.multiplier, inner, np.float32)
        zero_point, low, high = args.zero_point, args.low, args.high
        start = -args.zero * middle
        for unit in range(begin, end):
            row, first = unit // chunks, unit % chunks * _CHUNK
            count, step = min(_CHUNK, inner - first), args.x_middle
            source = view(
                bases, args.x + (row * args.x_outer + first) * element_size, (middle - 1) * step + count, element
            )
            if count == 1:
                one = start
                for i in range(middle):
                    one += np.int64(source[index(i * step)])
                sums[0] = one
            else:
                for c in range(count):
                    sums[c] = start
                for i in range(middle):
                    for c in range(count):
                        sums[c] += np.int64(source[index(i * step + c)])
            y = view(bases, args.y + (row * args.y_outer + first) * result_size, count, result)
            for c in range(count):
                k = index(first + c)
                y[c] = finish(sums[c], mantissa[k], shift[k], multiplier[k], zero_point, low, high)

    sizes = dict.fromkeys(("x", "y", "outer", "middle", "inner", "x_outer", "x_middle", "y_outer", "zero"), "i8")
    name = f"sum.{x}.{y}.{rounding}{'.plain' if plain else ''}"
    return Kernel(name, record(**sizes, **PARAMETERS), total)
