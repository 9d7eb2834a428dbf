"""A function of each element."""

from __future__ import annotations

from functools import cache

from qbench.kernels.floats.functions import FUNCTIONS
from qbench.kernels.floats.storage import FloatType, storage
from qbench.kernels.floats.walk import extents
from qbench.kernels.kernel import Kernel, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import view
from qbench.kernels.split import share

__all__ = ["unary_kernel"]


@cache
def unary_kernel(function: str, dtype: FloatType, level: Level) -> Kernel:
    """``y = function(x, alpha, beta)``.

    Parameters
    ----------
    function
        A key of `FUNCTIONS`.
    dtype
        Of both operands.
    level
        Decides how float16 is converted.

    Returns
    -------
    Kernel
        Its fields are the references x and y, sizes and strides as `strided` makes them, alpha and beta. y has
        stride 1 along the last axis.
    """
    apply, kept = FUNCTIONS[function], storage(dtype, level)
    kind, size, load, store = kept.dtype, kept.size, kept.load, kept.store

    def run(args, bases, thread, threads):
        position, end = share(args.n0 * args.n1 * args.n2 * args.n3, thread, threads, 16)
        alpha, beta = args.alpha, args.beta
        while position < end:
            row = position // args.n3
            start = position - row * args.n3
            count = min(args.n3 - start, end - position)
            i0, i1, i2 = row // (args.n1 * args.n2), row // args.n2 % args.n1, row % args.n2
            step = args.x3
            at = i0 * args.x0 + i1 * args.x1 + i2 * args.x2 + start * step
            x = view(bases, args.x + at * size, (count - 1) * step + 1, kind)
            at = i0 * args.y0 + i1 * args.y1 + i2 * args.y2 + start
            y = view(bases, args.y + at * size, count, kind)
            if step == 1:
                for i in range(count):
                    store(y, i, apply(load(x, i), alpha, beta))
            else:
                for i in range(count):
                    store(y, i, apply(load(x, i * step), alpha, beta))
            position += count

    arguments = record(x="i8", y="i8", **extents("x", "y"), alpha="f4", beta="f4")
    return Kernel(f"float.unary.{function}.{kept.name}", arguments, run)
