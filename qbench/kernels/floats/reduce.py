"""Sums, means and extremes along axes."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from qbench.kernels.floats.storage import FloatType, storage
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import view
from qbench.kernels.split import share
from qbench.kernels.stack import stack_array

Reduction = Literal["mean", "sum", "prod", "max", "min"]

_CHUNK = 64  # results at a time
_LANES = 16  # partial results of a row whose elements lie side by side

_COMBINE: dict[str, tuple[float, Callable[[Any, Any], Any]]] = {
    "mean": (0.0, register_jitable(lambda a, b: a + b)),
    "sum": (0.0, register_jitable(lambda a, b: a + b)),
    "prod": (1.0, register_jitable(lambda a, b: a * b)),
    "max": (-np.inf, register_jitable(lambda a, b: max(a, b))),
    "min": (np.inf, register_jitable(lambda a, b: min(a, b))),
}


@makes_kernels
def reduce_kernel(function: Reduction, dtype: FloatType, level: Level) -> Kernel:
    """One result for each (outer, inner) over all (rows, columns), accumulated in float64.

    Returns
    -------
    Kernel
        Its fields are x and y, the references; the sizes outer, rows, columns, inner; the element strides x_outer,
        x_row, x_column, x_inner and y_outer (y has stride 1 along inner).
    """
    kept, mean = storage(dtype, level), function == "mean"
    element, size, load, store = kept.dtype, kept.size, kept.load, kept.store
    neutral, combine = _COMBINE[function]

    def run(args, bases, thread, threads):
        divisor = np.float64(max(args.rows * args.columns, 1))
        chunks = (args.inner + _CHUNK - 1) // _CHUNK
        begin, end = share(args.outer * chunks, thread, threads)
        result = stack_array(_CHUNK, np.float64)
        for piece in range(begin, end):
            outer, first = piece // chunks, piece % chunks * _CHUNK
            count = min(_CHUNK, args.inner - first)
            source = outer * args.x_outer + first * args.x_inner
            result[:] = neutral
            if args.inner == 1 and args.x_column == 1:
                for i in range(args.rows):
                    x = view(bases, args.x + (source + i * args.x_row) * size, args.columns, element)
                    whole = args.columns // _LANES * _LANES
                    for j in range(0, whole, _LANES):
                        for lane in range(_LANES):
                            result[lane] = combine(result[lane], np.float64(load(x, j + lane)))
                    for j in range(whole, args.columns):
                        result[j - whole] = combine(result[j - whole], np.float64(load(x, j)))
                for lane in range(1, _LANES):
                    result[0] = combine(result[0], result[lane])
            else:
                for i in range(args.rows):
                    for j in range(args.columns):
                        at = source + i * args.x_row + j * args.x_column
                        x = view(bases, args.x + at * size, (count - 1) * args.x_inner + 1, element)
                        if args.x_inner == 1:
                            for c in range(count):
                                result[c] = combine(result[c], np.float64(load(x, c)))
                        else:
                            for c in range(count):
                                result[c] = combine(result[c], np.float64(load(x, c * args.x_inner)))
            y = view(bases, args.y + (outer * args.y_outer + first) * size, count, element)
            for c in range(count):
                store(y, c, np.float32(np.divide(result[c], divisor) if mean else result[c]))

    names = "x y outer rows columns inner x_outer x_row x_column x_inner y_outer"
    return Kernel(f"float.reduce.{function}.{kept.name}", record(**dict.fromkeys(names.split(), "i8")), run)
