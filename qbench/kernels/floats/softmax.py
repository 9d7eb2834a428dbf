"""Softmax and its logarithm along rows."""

from __future__ import annotations

from functools import cache

import numpy as np

from qbench.kernels.floats.functions import exp
from qbench.kernels.floats.storage import FloatType, storage
from qbench.kernels.kernel import Kernel, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import view
from qbench.kernels.split import share
from qbench.kernels.stack import stack_array

__all__ = ["softmax_kernel"]

_LANES = 16


@cache
def softmax_kernel(logarithm: bool, dtype: FloatType, level: Level) -> Kernel:
    """Softmax of each row, or its logarithm.

    Returns
    -------
    Kernel
        Its fields are x and y, the references; rows and columns, the sizes; x_row and y_row, elements from row to row.
    """
    kept = storage(dtype, level)
    element, size, load, store = kept.dtype, kept.size, kept.load, kept.store

    def run(args, bases, thread, threads):
        begin, end = share(args.rows, thread, threads)
        whole = args.columns // _LANES * _LANES
        sums = stack_array(_LANES, np.float32)
        for row in range(begin, end):
            x = view(bases, args.x + row * args.x_row * size, args.columns, element)
            y = view(bases, args.y + row * args.y_row * size, args.columns, element)
            sums[:] = np.float32(-np.inf)
            for i in range(0, whole, _LANES):
                for lane in range(_LANES):
                    sums[lane] = max(sums[lane], load(x, i + lane))
            for i in range(whole, args.columns):
                sums[i - whole] = max(sums[i - whole], load(x, i))
            largest = sums[0]
            for lane in range(1, _LANES):
                largest = max(largest, sums[lane])
            sums[:] = np.float32(0)
            for i in range(0, whole, _LANES):
                for lane in range(_LANES):
                    sums[lane] += exp(load(x, i + lane) - largest)
            for i in range(whole, args.columns):
                sums[i - whole] += exp(load(x, i) - largest)
            total = np.float32(0)
            for lane in range(_LANES):
                total += sums[lane]
            if logarithm:
                shift = np.float32(np.log(total))
                for i in range(args.columns):
                    store(y, i, load(x, i) - largest - shift)
            else:
                for i in range(args.columns):
                    store(y, i, np.divide(exp(load(x, i) - largest), total))

    fields = record(**dict.fromkeys(["x", "y", "rows", "columns", "x_row", "y_row"], "i8"))
    return Kernel(f"float.{'log_' * logarithm}softmax.{kept.name}", fields, run)
