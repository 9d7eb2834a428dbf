"""A function of each element."""

from qbench.kernels.floats.functions import FUNCTIONS
from qbench.kernels.floats.storage import FloatType, storage
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import view
from qbench.kernels.split import share
from qbench.kernels.walk import extents, index_of, onward, stretch


@makes_kernels
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
        sizes = args.n0, args.n1, args.n2, args.n3
        position, end = share(args.n0 * args.n1 * args.n2 * args.n3, thread, threads, 16)
        alpha, beta = args.alpha, args.beta
        place, count = stretch(sizes, position, end)
        while position < end:
            step = args.x3
            at = index_of(place, (args.x0, args.x1, args.x2, args.x3))
            x = view(bases, args.x + at * size, (count - 1) * step + 1, kind)
            at = index_of(place, (args.y0, args.y1, args.y2, 1))
            y = view(bases, args.y + at * size, count, kind)
            if step == 1:
                for i in range(count):
                    store(y, i, apply(load(x, i), alpha, beta))
            else:
                for i in range(count):
                    store(y, i, apply(load(x, i * step), alpha, beta))
            position += count
            place, count = onward(sizes, place, end - position)

    arguments = record(x="i8", y="i8", **extents("x", "y"), alpha="f4", beta="f4")
    return Kernel(f"float.unary.{function}.{kept.name}", arguments, run)
