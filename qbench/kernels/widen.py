"""Codes of 8 bits as integers of 16, for products of a processor that has none of bytes."""

import numpy as np

from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import share
from qbench.kernels.walk import extents, index_of, onward, stretch

_FEWEST = 64
"""Elements that a thread gets at least: a cache line of codes."""


@makes_kernels
def widen_kernel() -> Kernel:
    """``y = x``, uint8 as int16.

    Its fields are the references x and y, sizes and strides as `walk.strided` makes them; both have stride 1 along the
    last axis.
    """

    def run(args, bases, thread, threads):
        sizes = args.n0, args.n1, args.n2, args.n3
        position, end = share(args.n0 * args.n1 * args.n2 * args.n3, thread, threads, _FEWEST)
        place, count = stretch(sizes, position, end)
        while position < end:
            x = view(bases, args.x + index_of(place, (args.x0, args.x1, args.x2, 1)), count, np.uint8)
            y = view(bases, args.y + 2 * index_of(place, (args.y0, args.y1, args.y2, 1)), count, np.int16)
            for i in range(count):
                y[i] = x[i]
            position += count
            place, count = onward(sizes, place, end - position)

    return Kernel("widen.u1.i2", record(x="i8", y="i8", **extents("x", "y")), run)
