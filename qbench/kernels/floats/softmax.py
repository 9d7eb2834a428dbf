"""Softmax and its logarithm along rows."""

from typing import Any

import numpy as np

from qbench.kernels.floats.rows import LANES, largest, powers
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import at, share
from qbench.kernels.stack import stack_array

_SHORT = 4
"""Columns up to which several rows are done at once, one beside the other in vectors."""
_ELEMENTS = _SHORT * LANES


def _short_rows(logarithm: bool, safe: bool) -> Any:
    """What does up to `LANES` rows of up to `_SHORT` columns."""

    @register_jitable
    def several(bases, x, y, x_row, y_row, rows, columns):
        shifted, results = stack_array(_ELEMENTS, np.float32), stack_array(_ELEMENTS, np.float32)
        above, totals = stack_array(LANES, np.float32), stack_array(LANES, np.float32)
        count = columns * LANES
        source = view(bases, x, (rows - 1) * x_row + columns, np.float32)
        target = view(bases, y, (rows - 1) * y_row + columns, np.float32)
        if rows == LANES:  # a number that is known makes the loop fast
            for j in range(columns):
                for row in range(LANES):
                    shifted[at(j * LANES + row)] = source[at(row * x_row + j)]
        else:
            shifted[:count] = 0
            for j in range(columns):
                for row in range(rows):
                    shifted[at(j * LANES + row)] = source[at(row * x_row + j)]
        above[:] = -np.inf
        for j in range(columns):
            for row in range(LANES):
                value = shifted[at(j * LANES + row)]
                above[at(row)] = value if value > above[at(row)] else above[at(row)]
        for j in range(columns):
            for row in range(LANES):
                shifted[at(j * LANES + row)] -= above[at(row)]
        powers(shifted[:count], np.float32(0), results[:count])
        totals[:] = 0
        for j in range(columns):
            for row in range(LANES):
                totals[at(row)] += results[at(j * LANES + row)]
        for row in range(LANES):
            total = totals[at(row)]
            totals[at(row)] = np.float32(np.log(total)) if logarithm else np.divide(np.float32(1), total)
        for j in range(columns):
            for row in range(LANES):
                place, number = at(j * LANES + row), totals[at(row)]
                if logarithm:
                    results[place] = shifted[place] - number
                else:
                    results[place] = np.float32(0) if safe and number != number else results[place] * number
        if rows == LANES:
            for j in range(columns):
                for row in range(LANES):
                    target[at(row * y_row + j)] = results[at(j * LANES + row)]
        else:
            for j in range(columns):
                for row in range(rows):
                    target[at(row * y_row + j)] = results[at(j * LANES + row)]

    return several


@makes_kernels
def softmax_kernel(logarithm: bool, safe: bool = False) -> Kernel:
    """Softmax of each row, or its logarithm; a safe one is zero where the sum of powers is not a number.

    Returns
    -------
    Kernel
        Its fields are x and y, the references; rows and columns, the sizes; x_row and y_row, elements from row to row.
    """

    several = _short_rows(logarithm, safe)

    def run(args, bases, thread, threads):
        first, end = share(args.rows, thread, threads)
        columns = args.columns
        if columns <= _SHORT:
            for row in range(first, end, LANES):
                x, y = args.x + row * args.x_row * 4, args.y + row * args.y_row * 4
                several(bases, x, y, args.x_row, args.y_row, min(LANES, end - row), columns)
            return
        for row in range(first, end):
            x = view(bases, args.x + row * args.x_row * 4, columns, np.float32)
            y = view(bases, args.y + row * args.y_row * 4, columns, np.float32)
            above = largest(x)
            total = powers(x, above, y)
            if logarithm:
                shift = np.float32(np.log(total))
                for i in range(columns):
                    y[at(i)] = x[at(i)] - above - shift
            elif safe and total != total:
                y[:] = 0
            else:
                scale = np.divide(np.float32(1), total)
                for i in range(columns):
                    y[at(i)] *= scale

    fields = record(**dict.fromkeys(["x", "y", "rows", "columns", "x_row", "y_row"], "i8"))
    return Kernel(f"float.{'log_' * logarithm}{'safe_' * safe}softmax", fields, run)
