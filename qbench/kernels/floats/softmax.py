"""Softmax and its logarithm along rows."""

from typing import Any

import numpy as np
from numba.extending import register_jitable

from qbench.kernels.floats.functions import exp
from qbench.kernels.floats.storage import FloatType, Storage, storage
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import view
from qbench.kernels.split import at, share
from qbench.kernels.stack import stack_array

_LANES = 16
_SHORT = 24
"""Columns up to which rows are taken side by side."""
_TABLE = _SHORT * _LANES


@makes_kernels
def softmax_kernel(logarithm: bool, dtype: FloatType, level: Level) -> Kernel:
    """Softmax of each row, or its logarithm.

    Returns
    -------
    Kernel
        Its fields are x and y, the references; rows and columns, the sizes; x_row and y_row, elements from row to row.
    """
    kept = storage(dtype, level)
    element, size = kept.dtype, kept.size
    long, short = _long(logarithm, kept), _short(logarithm, kept)

    def run(args, bases, thread, threads):
        begin, end = share(args.rows, thread, threads)
        columns, many = args.columns, _LANES if args.columns <= _SHORT else 1
        for row in range(begin, end, many):
            count = min(many, end - row)
            x = view(bases, args.x + row * args.x_row * size, (count - 1) * args.x_row + columns, element)
            y = view(bases, args.y + row * args.y_row * size, (count - 1) * args.y_row + columns, element)
            if columns <= _SHORT:
                short(x, args.x_row, y, args.y_row, count, columns)
            else:
                long(x, y, columns)

    fields = record(**dict.fromkeys(["x", "y", "rows", "columns", "x_row", "y_row"], "i8"))
    return Kernel(f"float.{'log_' * logarithm}softmax.{kept.name}", fields, run)


def _short(logarithm: bool, kept: Storage) -> Any:
    """Rows side by side: each lane of a vector has one of its own; those that are missing repeat the last."""
    load, store = kept.load, kept.store

    @register_jitable
    def rows(x, x_row, y, y_row, count, columns):
        table = stack_array(_TABLE, np.float32)
        largest, sums = stack_array(_LANES, np.float32), stack_array(_LANES, np.float32)
        for lane in range(_LANES):
            start = min(lane, count - 1) * x_row
            for column in range(columns):
                table[at(column * _LANES + lane)] = load(x, at(start + column))
        largest[:] = np.float32(-np.inf)
        sums[:] = np.float32(0)
        for column in range(columns):
            for lane in range(_LANES):
                value = table[at(column * _LANES + lane)]
                largest[lane] = value if value > largest[lane] else largest[lane]
        for column in range(columns):
            for lane in range(_LANES):
                above = table[at(column * _LANES + lane)] - largest[lane]
                power = exp(above)
                sums[lane] += power
                table[at(column * _LANES + lane)] = above if logarithm else power
        for lane in range(_LANES):
            sums[lane] = np.float32(np.log(sums[lane])) if logarithm else np.divide(np.float32(1), sums[lane])
        for lane in range(count):
            for column in range(columns):
                value = table[at(column * _LANES + lane)]
                store(y, at(lane * y_row + column), value - sums[lane] if logarithm else value * sums[lane])

    return rows


def _long(logarithm: bool, kept: Storage) -> Any:
    """One row; the powers wait in the result where it holds them as they are."""
    load, store = kept.load, kept.store
    waits = kept.name == "float32" and not logarithm

    @register_jitable
    def row(x, y, columns):
        whole = columns // _LANES * _LANES
        sums = stack_array(_LANES, np.float32)
        sums[:] = np.float32(-np.inf)
        for i in range(0, whole, _LANES):
            for lane in range(_LANES):
                value = load(x, i + lane)
                sums[lane] = value if value > sums[lane] else sums[lane]
        for i in range(whole, columns):
            sums[i - whole] = max(sums[i - whole], load(x, i))
        largest = sums[0]
        for lane in range(1, _LANES):
            largest = max(largest, sums[lane])
        sums[:] = np.float32(0)
        if waits:
            for i in range(columns):
                store(y, i, exp(load(x, i) - largest))
        for i in range(0, whole, _LANES):
            for lane in range(_LANES):
                sums[lane] += load(y, i + lane) if waits else exp(load(x, i + lane) - largest)
        for i in range(whole, columns):
            sums[i - whole] += load(y, i) if waits else exp(load(x, i) - largest)
        total = np.float32(0)
        for lane in range(_LANES):
            total += sums[lane]
        shift = np.float32(np.log(total)) if logarithm else np.divide(np.float32(1), total)
        for i in range(columns):
            if logarithm:
                store(y, i, load(x, i) - largest - shift)
            else:
                store(y, i, (load(y, i) if waits else exp(load(x, i) - largest)) * shift)

    return row
