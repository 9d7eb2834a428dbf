"""float16 to float32 and back, and copies of either."""

from qbench.kernels.floats.storage import FloatType, storage
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import view
from qbench.kernels.split import share
from qbench.kernels.walk import extents, index_of, onward, stretch


@makes_kernels
def convert_kernel(source: FloatType, target: FloatType, level: Level) -> Kernel:
    """``y = x`` in another type, rounded half to even.

    Returns
    -------
    Kernel
        Its fields are x and y, the references, and sizes and strides as `strided` makes them. y has stride 1
        along the last axis.
    """
    given, wanted = storage(source, level), storage(target, level)

    kind, size, load = given.dtype, given.size, given.load
    wanted_kind, wanted_size, store = wanted.dtype, wanted.size, wanted.store

    def run(args, bases, thread, threads):
        sizes = args.n0, args.n1, args.n2, args.n3
        position, end = share(args.n0 * args.n1 * args.n2 * args.n3, thread, threads, 16)
        place, count = stretch(sizes, position, end)
        while position < end:
            step = args.x3
            at = index_of(place, (args.x0, args.x1, args.x2, args.x3))
            x = view(bases, args.x + at * size, (count - 1) * step + 1, kind)
            at = index_of(place, (args.y0, args.y1, args.y2, 1))
            y = view(bases, args.y + at * wanted_size, count, wanted_kind)
            if step == 1:
                for i in range(count):
                    store(y, i, load(x, i))
            else:
                for i in range(count):
                    store(y, i, load(x, i * step))
            position += count
            place, count = onward(sizes, place, end - position)

    return Kernel(f"float.convert.{given.name}.{wanted.name}", record(x="i8", y="i8", **extents("x", "y")), run)
