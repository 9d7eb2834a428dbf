"""Sums that grow along an axis."""

from typing import Any

import numpy as np

from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import share
from qbench.kernels.walk import extents, index_of, stretch

KINDS = ("i4", "i8", "f4")
"""The types of elements that are summed here, in NumPy's letters."""


@makes_kernels
def cumsum_kernel(kind: str, exclusive: bool) -> Kernel:
    """``y[j] = x[0] + ... + x[j]`` along each line, or without x[j]; one after the other, as NumPy adds.

    Parameters
    ----------
    kind
        The type of the elements, one of `KINDS`.
    exclusive
        Each sum leaves its own element out; the first one is 0.

    Returns
    -------
    Kernel
        Its fields are the references x and y; sizes and strides of the lines as `strided` makes them; depth, the
        elements of a line; reverse, 1 where sums grow from its end; and x_step and y_step, elements from one to the
        next.
    """
    dtype, size = np.dtype(kind).type, np.dtype(kind).itemsize

    def run(args: Any, bases: Any, thread: int, threads: int) -> None:
        sizes, depth = (args.n0, args.n1, args.n2, args.n3), args.depth
        total = args.n0 * args.n1 * args.n2 * args.n3
        for line in range(*share(total, thread, threads)):
            place, _ = stretch(sizes, line, total)
            at = args.x + index_of(place, (args.x0, args.x1, args.x2, args.x3)) * size
            x = view(bases, at, (depth - 1) * args.x_step + 1, dtype)
            at = args.y + index_of(place, (args.y0, args.y1, args.y2, args.y3)) * size
            y = view(bases, at, (depth - 1) * args.y_step + 1, dtype)
            start, onward = (depth - 1, -1) if args.reverse else (0, 1)
            grown = x[start * args.x_step]
            y[start * args.y_step] = dtype(0) if exclusive else grown
            for j in range(1, depth):
                here = start + j * onward
                if exclusive:
                    y[here * args.y_step] = grown
                grown = dtype(grown + x[here * args.x_step])
                if not exclusive:
                    y[here * args.y_step] = grown

    names = ("x", "y", "depth", "reverse", "x_step", "y_step")
    fields = record(**dict.fromkeys(names, "i8"), **extents("x", "y"))
    return Kernel(f"cumsum.{'before' if exclusive else 'with'}.{kind}", fields, run)
