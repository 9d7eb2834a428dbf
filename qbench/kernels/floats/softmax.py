"""Softmax and its logarithm along rows."""

import numpy as np

from qbench.kernels.floats.rows import largest, powers
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import at, share


@makes_kernels
def softmax_kernel(logarithm: bool, safe: bool = False) -> Kernel:
    """Softmax of each row, or its logarithm; a safe one is zero where the sum of powers is not a number.

    Returns
    -------
    Kernel
        Its fields are x and y, the references; rows and columns, the sizes; x_row and y_row, elements from row to row.
    """

    def run(args, bases, thread, threads):
        first, end = share(args.rows, thread, threads)
        columns = args.columns
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
