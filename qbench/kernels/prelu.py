"""PReLU of integers: one multiplier for what is at least zero, another for the rest."""

from typing import Literal

import numpy as np

from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import share
from qbench.kernels.walk import extents, index_of, onward, stretch

_NUMBERS = ("zero", "zero_point", "low", "high")


@makes_kernels
def prelu_kernel(x: Literal["u1", "i2"], y: Literal["u1", "i2"]) -> Kernel:
    """``y = clamp(floor((x - zero) * multiplier + 0.5) + zero_point)``, `multiplier` from `above`, or `below` zero.

    float64 holds an integer of 17 bits times a mantissa of 31, and a half beside it, exactly; sums of int32 are of 64
    bits in Numba, and no vectors.

    Returns
    -------
    Kernel
        Its fields are the references of x, of the multipliers (float64) and y; sizes and strides as `strided` makes
        them, those of multipliers with m; and, in float64, the zero points and the bounds of y as it is stored. y has
        stride 1 along the last axis.
    """
    kinds = np.dtype(x).type, np.dtype(y).type
    items = np.dtype(x).itemsize, np.dtype(y).itemsize

    @register_jitable
    def one(code, above, below, numbers):
        zero, zero_point, low, high = numbers
        centred = np.float64(np.int32(code)) - zero
        steps = np.floor(centred * (above if centred >= 0.0 else below) + 0.5)
        return np.int32(min(max(steps + zero_point, low), high))

    def prelu(args, bases, thread, threads):
        sizes = args.n0, args.n1, args.n2, args.n3
        first, end = share(args.n0 * args.n1 * args.n2 * args.n3, thread, threads, 64)
        numbers = args.zero, args.zero_point, args.low, args.high
        place, count = stretch(sizes, first, end)
        while first < end:
            start = index_of(place, (args.x0, args.x1, args.x2, args.x3))
            x = view(bases, args.x + start * items[0], (count - 1) * args.x3 + 1, kinds[0])
            start, many = index_of(place, (args.m0, args.m1, args.m2, args.m3)), (count - 1) * args.m3 + 1
            above = view(bases, args.above + start * 8, many, np.float64)
            below = view(bases, args.below + start * 8, many, np.float64)
            start = index_of(place, (args.y0, args.y1, args.y2, 1))
            y = view(bases, args.y + start * items[1], count, kinds[1])
            if args.x3 == 1 and args.m3 == 1:
                for i in range(count):
                    y[i] = one(x[i], above[i], below[i], numbers)
            elif args.x3 == 1 and args.m3 == 0:
                up, down = above[0], below[0]
                for i in range(count):
                    y[i] = one(x[i], up, down, numbers)
            else:
                for i in range(count):
                    y[i] = one(x[i * args.x3], above[i * args.m3], below[i * args.m3], numbers)
            first += count
            place, count = onward(sizes, place, end - first)

    references = dict.fromkeys(("x", "above", "below", "y"), "i8")
    fields = record(**references, **extents("x", "m", "y"), **dict.fromkeys(_NUMBERS, "f8"))
    return Kernel(f"prelu.{x}.{y}", fields, prelu)
