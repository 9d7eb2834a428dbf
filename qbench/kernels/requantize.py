"""Requantize by itself, and products of elements with the requantize behind them: any types, any broadcasting."""

from typing import Literal

import numpy as np

from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.rounding import PARAMETERS, finisher
from qbench.kernels.split import at, share
from qbench.kernels.walk import extent, extents, index_of, onward, stretch
from qbench.quant.rounding import Rounding

Narrow = Literal["u1", "i2"]
Wide = Literal["u1", "i2", "i4", "i8"]


@makes_kernels
def requantize_kernel(x: Wide, y: Wide, rounding: Rounding, plain: bool) -> Kernel:
    """``y = clamp(rescaled(x - zero) + zero_point)``, over axes as `walk.strided` has them.

    `mantissa`, `shift` (int32) and `multiplier` (float32) are walked with the strides ``m``; 0 repeats them.
    """
    finish, kinds = finisher(rounding, plain), (np.dtype(x).type, np.dtype(y).type)

    @register_jitable
    def row(args, x, mantissa, shift, multiplier, y, start_x, step_x, start_m, step_m, start_y, count):
        zero, zero_point, low, high = args.zero, args.zero_point, args.low, args.high
        if step_m == 0:
            m, s, f = mantissa[at(start_m)], shift[at(start_m)], multiplier[at(start_m)]
            for i in range(count):
                value = np.int64(x[at(start_x + i * step_x)]) - zero
                y[at(start_y + i)] = finish(value, m, s, f, zero_point, low, high)
        else:
            for i in range(count):
                value, k = np.int64(x[at(start_x + i * step_x)]) - zero, at(start_m + i * step_m)
                y[at(start_y + i)] = finish(value, mantissa[k], shift[k], multiplier[k], zero_point, low, high)

    def requantize(args, bases, thread, threads):
        sizes = args.n0, args.n1, args.n2, args.n3
        first, end = share(args.n0 * args.n1 * args.n2 * args.n3, thread, threads, 64)
        if first >= end:
            return
        of_x, of_y = (args.x0, args.x1, args.x2, args.x3), (args.y0, args.y1, args.y2, 1)
        of_m = args.m0, args.m1, args.m2, args.m3
        x = view(bases, args.x, extent(sizes, of_x), kinds[0])
        y = view(bases, args.y, extent(sizes, of_y), kinds[1])
        many = extent(sizes, of_m)
        mantissa, shift = view(bases, args.mantissa, many, np.int32), view(bases, args.shift, many, np.int32)
        multiplier = view(bases, args.multiplier, many, np.float32)
        place, count = stretch(sizes, first, end)
        while first < end:
            start_x, start_m, start_y = index_of(place, of_x), index_of(place, of_m), index_of(place, of_y)
            row(args, x, mantissa, shift, multiplier, y, start_x, args.x3, start_m, args.m3, start_y, count)
            first += count
            place, count = onward(sizes, place, end - first)

    name = f"requantize.{x}.{y}.{rounding}{'.plain' if plain else ''}"
    return Kernel(name, record(x="i8", y="i8", **extents("x", "m", "y"), zero="i8", **PARAMETERS), requantize)


@makes_kernels
def multiply_kernel(
    a: Narrow, b: Narrow, y: Wide, rounding: Rounding | None, plain: bool, offset: int | None = None
) -> Kernel:
    """``y = clamp(rescaled((a - zero_a) * (b - zero_b)) + zero_point)``; without a mode the products themselves.

    Parameters are walked as in `requantize_kernel`; `offset` is that of `finisher`.
    """
    finish, kinds = finisher(rounding, plain, offset), (np.dtype(a).type, np.dtype(b).type, np.dtype(y).type)

    @register_jitable
    def row(
        args, a, b, mantissa, shift, multiplier, y, start_a, step_a, start_b, step_b, start_m, step_m, start_y, count
    ):
        zero_a, zero_b = np.int32(args.zero_a), np.int32(args.zero_b)
        zero_point, low, high = args.zero_point, args.low, args.high
        if step_m == 0:
            m, s, f = mantissa[at(start_m)], shift[at(start_m)], multiplier[at(start_m)]
            for i in range(count):
                one = np.int64(np.int32(a[at(start_a + i * step_a)]) - zero_a)
                value = one * np.int64(np.int32(b[at(start_b + i * step_b)]) - zero_b)
                y[at(start_y + i)] = finish(value, m, s, f, zero_point, low, high)
        else:
            for i in range(count):
                one, k = np.int64(np.int32(a[at(start_a + i * step_a)]) - zero_a), at(start_m + i * step_m)
                value = one * np.int64(np.int32(b[at(start_b + i * step_b)]) - zero_b)
                y[at(start_y + i)] = finish(value, mantissa[k], shift[k], multiplier[k], zero_point, low, high)

    def multiply(args, bases, thread, threads):
        sizes = args.n0, args.n1, args.n2, args.n3
        first, end = share(args.n0 * args.n1 * args.n2 * args.n3, thread, threads, 64)
        if first >= end:
            return
        of_a, of_b = (args.a0, args.a1, args.a2, args.a3), (args.b0, args.b1, args.b2, args.b3)
        of_m, of_y = (args.m0, args.m1, args.m2, args.m3), (args.y0, args.y1, args.y2, 1)
        a = view(bases, args.a, extent(sizes, of_a), kinds[0])
        b = view(bases, args.b, extent(sizes, of_b), kinds[1])
        y = view(bases, args.y, extent(sizes, of_y), kinds[2])
        many = extent(sizes, of_m)
        mantissa, shift = view(bases, args.mantissa, many, np.int32), view(bases, args.shift, many, np.int32)
        multiplier = view(bases, args.multiplier, many, np.float32)
        place, count = stretch(sizes, first, end)
        while first < end:
            start_a, start_b = index_of(place, of_a), index_of(place, of_b)
            start_m, start_y = index_of(place, of_m), index_of(place, of_y)
            row(
                args, a, b, mantissa, shift, multiplier, y, start_a, args.a3, start_b, args.b3, start_m, args.m3,
                start_y, count,
            )  # fmt: skip
            first += count
            place, count = onward(sizes, place, end - first)

    fields = record(a="i8", b="i8", y="i8", **extents("a", "b", "m", "y"), zero_a="i4", zero_b="i4", **PARAMETERS)
    mode = f"{rounding}{'.plain' if plain else ''}{'' if offset is None else f'.first{offset}'}"
    return Kernel(f"multiply.{a}.{b}.{y}.{mode}", fields, multiply)
