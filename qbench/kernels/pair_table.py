"""Any function of two 8-bit integers, by table."""

import numpy as np

from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import at, share
from qbench.kernels.walk import extents, index_of, onward, stretch

ENTRIES = 256


@makes_kernels
def pair_table_kernel(item: int) -> Kernel:
    """``y = table[a, b]`` of codes, for results of `item` bytes of any type.

    Its fields are the references of a, b, y and the table of 256 x 256 results, sizes and strides as `strided` makes
    them. y has stride 1 along the last axis.
    """
    result = np.dtype(f"u{item}").type

    def look_up(args, bases, thread, threads):
        sizes, table = (args.n0, args.n1, args.n2, args.n3), view(bases, args.table, ENTRIES * ENTRIES, result)
        position, end = share(args.n0 * args.n1 * args.n2 * args.n3, thread, threads, 64)
        place, count = stretch(sizes, position, end)
        while position < end:
            a_step, b_step = args.a3, args.b3
            first = index_of(place, (args.a0, args.a1, args.a2, a_step))
            a = view(bases, args.a + first, (count - 1) * a_step + 1, np.uint8)
            first = index_of(place, (args.b0, args.b1, args.b2, b_step))
            b = view(bases, args.b + first, (count - 1) * b_step + 1, np.uint8)
            y = view(bases, args.y + index_of(place, (args.y0, args.y1, args.y2, 1)) * item, count, result)
            for i in range(count):
                y[at(i)] = table[at(np.int64(a[at(i * a_step)]) * ENTRIES + np.int64(b[at(i * b_step)]))]
            position += count
            place, count = onward(sizes, place, end - position)

    fields = record(**dict.fromkeys(["a", "b", "y", "table"], "i8"), **extents("a", "b", "y"))
    return Kernel(f"pair_table.{item}", fields, look_up)
