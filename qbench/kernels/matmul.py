"""Exact matrix products of two activations, batched, with any strides."""

from typing import Literal

import numpy as np

from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.rounding import finisher
from qbench.kernels.split import at, share
from qbench.kernels.stack import stack_array
from qbench.quant.rounding import Rounding

_COLUMNS = 256
"""Columns of the result that are summed at a time."""

_FIELDS = (
    "a", "b", "y", "bias", "mantissa", "shift", "multiplier", "a_starts", "b_starts", "y_starts", "batch", "rows",
    "columns", "depth", "a_row", "a_step", "b_step", "b_column", "y_row", "a_extent", "b_extent", "zero_a", "zero_b",
    "run", "zero_point", "low", "high",
)  # fmt: skip


@register_jitable
def dot(a, start_a, step_a, b, start_b, step_b, depth, zero_a, zero_b, run):
    """``sum over k of (a[start_a + k * step_a] - zero_a) * (b[start_b + k * step_b] - zero_b)``."""
    total = np.int64(0)
    if run == 0:
        for k in range(depth):
            one = np.int64(a[at(start_a + k * step_a)]) - zero_a
            total += one * (np.int64(b[at(start_b + k * step_b)]) - zero_b)
        return total
    for first in range(0, depth, run):
        part = np.int32(0)
        for k in range(first, min(first + run, depth)):
            one = np.int32(np.int32(a[at(start_a + k * step_a)]) - np.int32(zero_a))
            other = np.int32(np.int32(b[at(start_b + k * step_b)]) - np.int32(zero_b))
            part = np.int32(part + np.int32(one * other))
        total += part
    return total


@register_jitable
def add_row(a, start_a, step_a, b, start_b, step_b, depth, count, zero_a, zero_b, run, narrow, wide):
    """Add to ``wide[j]`` for `count` columns whose elements of b are neighbours."""
    if run == 0:
        for k in range(depth):
            one = np.int64(a[at(start_a + k * step_a)]) - zero_a
            for j in range(count):
                wide[j] += one * (np.int64(b[at(start_b + k * step_b + j)]) - zero_b)
        return
    zero = np.int32(zero_b)
    for first in range(0, depth, run):
        for j in range(count):
            narrow[j] = 0
        for k in range(first, min(first + run, depth)):
            one = np.int32(np.int32(a[at(start_a + k * step_a)]) - np.int32(zero_a))
            for j in range(count):
                other = np.int32(np.int32(b[at(start_b + k * step_b + j)]) - zero)
                narrow[j] = np.int32(narrow[j] + np.int32(one * other))
        for j in range(count):
            wide[j] += np.int64(narrow[j])


@register_jitable
def add_columns(
    a, start_a, step_a, b, start_b, step_b, column_b, depth, count, zero_a, zero_b, run, narrow, wide
):  # fmt: skip
    """Add to ``wide[j]`` the products of a row of a with each of `count` columns of b, `column_b` apart."""
    if column_b == 1:
        add_row(a, start_a, step_a, b, start_b, step_b, depth, count, zero_a, zero_b, run, narrow, wide)
    elif step_a == 1 and step_b == 1:  # known steps become vectors
        for j in range(count):
            wide[j] += dot(a, start_a, 1, b, start_b + j * column_b, 1, depth, zero_a, zero_b, run)
    else:
        for j in range(count):
            wide[j] += dot(a, start_a, step_a, b, start_b + j * column_b, step_b, depth, zero_a, zero_b, run)


@makes_kernels
def matmul_kernel(
    a: Literal["u1", "i2"],
    b: Literal["u1", "i2"],
    y: Literal["u1", "i2", "i4", "i8"],
    rounding: Rounding | None,
    plain: bool,
) -> Kernel:
    """``y[n] = requantized((a[n] - zero_a) @ (b[n] - zero_b) + bias)`` for each n of a batch.

    `a_starts`, `b_starts` and `y_starts` (int64[batch]) say where the matrices begin, in elements. `a_step` and
    `b_step` lie between neighbours along the depth; a and b have `a_extent` and `b_extent` elements. `bias` is
    int64[columns], the multipliers have one element. `run` products fit 32 bits (0: not even one).
    """
    a_type, b_type, y_type = np.dtype(a).type, np.dtype(b).type, np.dtype(y).type
    finish, item = finisher(rounding, plain), np.dtype(y).itemsize

    def matmul(args, bases, thread, threads):
        rows, columns, depth, run = args.rows, args.columns, args.depth, args.run
        begin, end = share(args.batch * rows, thread, threads)
        if begin >= end or columns == 0:
            return
        a, b = view(bases, args.a, args.a_extent, a_type), view(bases, args.b, args.b_extent, b_type)
        a_starts = view(bases, args.a_starts, args.batch, np.int64)
        b_starts = view(bases, args.b_starts, args.batch, np.int64)
        y_starts, bias = view(bases, args.y_starts, args.batch, np.int64), view(bases, args.bias, columns, np.int64)
        mantissa, shift = view(bases, args.mantissa, 1, np.int32)[0], view(bases, args.shift, 1, np.int32)[0]
        multiplier = view(bases, args.multiplier, 1, np.float32)[0]
        narrow, wide = stack_array(_COLUMNS, np.int32), stack_array(_COLUMNS, np.int64)
        zero_a, zero_b, zero_point, low, high = args.zero_a, args.zero_b, args.zero_point, args.low, args.high
        for unit in range(begin, end):
            n, row = unit // rows, unit % rows
            start_a, start_b = a_starts[n] + row * args.a_row, b_starts[n]
            y = view(bases, args.y + (y_starts[n] + row * args.y_row) * item, columns, y_type)
            for first in range(0, columns, _COLUMNS):
                count, place = min(_COLUMNS, columns - first), start_b + first * args.b_column
                for j in range(count):
                    wide[j] = bias[at(first + j)]
                add_columns(
                    a, start_a, args.a_step, b, place, args.b_step, args.b_column, depth, count, zero_a, zero_b, run,
                    narrow, wide,
                )  # fmt: skip
                for j in range(count):
                    y[at(first + j)] = finish(wide[j], mantissa, shift, multiplier, zero_point, low, high)

    name = f"matmul.{a}.{b}.{y}.{rounding}{'.plain' if plain else ''}"
    return Kernel(name, record(**dict.fromkeys(_FIELDS, "i8")), matmul)
