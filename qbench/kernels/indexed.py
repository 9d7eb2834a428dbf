"""Parts of memory picked and written by indices that a run brings, and the check that these point into it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import share
from qbench.kernels.walk import extents, index_of, onward, stretch

DEPTH = 4
"""Most numbers in one index."""

WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "none": register_jitable(lambda old, new: new),
    "add": register_jitable(lambda old, new: old + new),
    "mul": register_jitable(lambda old, new: old * new),
    "max": register_jitable(lambda old, new: new if new > old or new != new else old),
    "min": register_jitable(lambda old, new: new if new < old or new != new else old),
}
"""What becomes of an element that is written to, by the name of a reduction; NaN stays NaN, as in NumPy."""


@register_jitable
def _counted(index: Any, size: Any) -> Any:
    """An index from the front, and within the size whatever it was."""
    index = np.int64(index)
    return min(max(index + size if index < 0 else index, 0), size - 1)


@makes_kernels
def pick_kernel(item: int, index: str) -> Kernel:
    """``y[i, j] = x[i, indices[i, j]]``, a run of `inner` neighbours each; an index has `depth` numbers.

    What points outside picks any element: `beyond_kernel` tells of it.

    Parameters
    ----------
    item
        Bytes of an element, 1, 2, 4 or 8.
    index
        The type of the indices, in NumPy's letters.

    Returns
    -------
    Kernel
        Its fields are the references x, indices and y; outer and count, the sizes of i and j; x_outer and i_outer,
        elements of x and indices from one i to the next (0: the same indices for all); sizes and steps of the axes of
        x that the numbers of an index go along.
    """
    dtype, kind = np.dtype(f"u{item}").type, np.dtype(index).type

    def run(args, bases, thread, threads):
        count, depth, inner, size, stride = args.count, args.depth, args.inner, args.sizes, args.steps
        first, end = share(args.outer * count, thread, threads)
        for row in range(first, end):
            i, j = row // count, row % count
            place = i * args.x_outer
            at = view(bases, args.indices + (i * args.i_outer + j * depth) * index_size, depth, kind)
            for k in range(depth):
                place += _counted(at[k], size[k]) * stride[k]
            x = view(bases, args.x + place * item, inner, dtype)
            y = view(bases, args.y + row * inner * item, inner, dtype)
            for k in range(inner):
                y[k] = x[k]

    index_size = np.dtype(index).itemsize
    numbers = dict.fromkeys(["x", "indices", "y", "outer", "count", "x_outer", "i_outer", "depth", "inner"], "i8")
    return Kernel(f"pick.{item}.{index}", record(**numbers, sizes=f"{DEPTH}i8", steps=f"{DEPTH}i8"), run)


@makes_kernels
def put_kernel(kind: str, index: str, function: str) -> Kernel:
    """``y[indices[j]] = write(y[indices[j]], x[j])``, a run of `inner` neighbours each, in the order of j.

    What points outside is written to any element: `beyond_kernel` tells of it.

    Parameters
    ----------
    kind, index
        The types of the elements and of the indices, in NumPy's letters.
    function
        A key of `WRITES`.

    Returns
    -------
    Kernel
        Its fields are the references x, indices and y; count and depth, of the indices and of the numbers in each; and
        sizes and steps of the axes of y that the numbers go along.
    """
    dtype, item, write, index_dtype = (
        np.dtype(kind).type,
        np.dtype(kind).itemsize,
        WRITES[function],
        np.dtype(index).type,
    )

    def run(args, bases, thread, threads):
        count, depth, size, stride = args.count, args.depth, args.sizes, args.steps
        first, end = share(args.inner, thread, threads, 16)  # so that no two threads write to one element
        if first >= end:
            return
        indices = view(bases, args.indices, count * depth, index_dtype)
        for j in range(count):
            place = first
            for k in range(depth):
                place += _counted(indices[j * depth + k], size[k]) * stride[k]
            x = view(bases, args.x + (j * args.inner + first) * item, end - first, dtype)
            y = view(bases, args.y + place * item, end - first, dtype)
            for k in range(end - first):
                y[k] = write(y[k], x[k])

    numbers = dict.fromkeys(["x", "indices", "y", "count", "depth", "inner"], "i8")
    fields = record(**numbers, sizes=f"{DEPTH}i8", steps=f"{DEPTH}i8")
    return Kernel(f"put.{function}.{kind}.{index}", fields, run)


@makes_kernels
def along_kernel(kind: str, index: str, function: str) -> Kernel:
    """Along lines, ``y[j] = x[i[j]]`` ("take"), or ``y[i[j]] = write(y[i[j]], x[j])`` in the order of j.

    What points outside is any element of the line: `beyond_kernel` tells of it.

    Parameters
    ----------
    kind, index
        The types of the elements and of the indices, in NumPy's letters.
    function
        "take" or a key of `WRITES`.

    Returns
    -------
    Kernel
        Its fields are the references x, y and i; sizes and strides of the lines as `strided` makes them; depth, the
        number of indices in a line, x_step, y_step and i_step, elements from one to the next; and reach, the elements
        of a line that indices point into.
    """
    dtype, item, index_dtype = np.dtype(kind).type, np.dtype(kind).itemsize, np.dtype(index).type
    takes, index_item = function == "take", np.dtype(index).itemsize
    write = WRITES["none" if takes else function]

    def run(args, bases, thread, threads):
        sizes, depth, size = (args.n0, args.n1, args.n2, args.n3), args.depth, args.reach
        xs, ys = args.x_step, args.y_step
        x_count, y_count = (size, depth) if takes else (depth, size)
        total = args.n0 * args.n1 * args.n2 * args.n3
        for line in range(*share(total, thread, threads)):
            place, _ = stretch(sizes, line, total)
            start = args.x + index_of(place, (args.x0, args.x1, args.x2, args.x3)) * item
            x = view(bases, start, (x_count - 1) * xs + 1, dtype)
            start = args.y + index_of(place, (args.y0, args.y1, args.y2, args.y3)) * item
            y = view(bases, start, (y_count - 1) * ys + 1, dtype)
            start = args.i + index_of(place, (args.i0, args.i1, args.i2, args.i3)) * index_item
            i = view(bases, start, (depth - 1) * args.i_step + 1, index_dtype)
            for j in range(depth):
                at = _counted(i[j * args.i_step], size)
                if takes:
                    y[j * ys] = x[at * xs]
                else:
                    y[at * ys] = write(y[at * ys], x[j * xs])

    numbers = dict.fromkeys(["x", "y", "i", "depth", "reach", "x_step", "y_step", "i_step"], "i8")
    return Kernel(f"along.{function}.{kind}.{index}", record(**numbers, **extents("x", "y", "i")), run)


@makes_kernels
def beyond_kernel(index: str) -> Kernel:
    """Sets the int64 at `found` to 1 if an index of `depth` numbers each does not point into `sizes`.

    The indices lie with the sizes and strides that `strided` makes, their numbers `apart` elements from each other.
    """
    kind, item = np.dtype(index).type, np.dtype(index).itemsize

    def run(args, bases, thread, threads):
        sizes, size, inner, apart = (args.n0, args.n1, args.n2, args.n3), args.sizes, args.x3, args.apart
        found = view(bases, args.found, 1, np.int64)
        position, end = share(args.n0 * args.n1 * args.n2 * args.n3, thread, threads)
        place, count = stretch(sizes, position, end)
        while position < end:
            start = args.x + index_of(place, (args.x0, args.x1, args.x2, inner)) * item
            x = view(bases, start, (count - 1) * inner + (args.depth - 1) * apart + 1, kind)
            for k in range(args.depth):
                for i in range(count):
                    number = x[i * inner + k * apart]
                    if number < -size[k] or number >= size[k]:
                        found[0] = 1
            position += count
            place, count = onward(sizes, place, end - position)

    numbers = dict.fromkeys(["x", "depth", "apart", "found"], "i8")
    return Kernel(f"beyond.{index}", record(**numbers, sizes=f"{DEPTH}i8", **extents("x")), run)
