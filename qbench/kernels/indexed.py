"""Parts of memory picked by indices that a run brings, and the check that these point into it."""

from typing import Any

import numpy as np
from numba.extending import register_jitable

from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import share

DEPTH = 4
"""Most numbers in one index."""


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
def beyond_kernel(index: str) -> Kernel:
    """Sets the int64 at `found` to 1 if one of `count` indices of `depth` numbers each does not point into `sizes`."""
    kind = np.dtype(index).type

    def run(args, bases, thread, threads):
        depth, size = args.depth, args.sizes
        x, found = view(bases, args.x, args.count * depth, kind), view(bases, args.found, 1, np.int64)
        first, end = share(args.count, thread, threads)
        for row in range(first, end):
            for k in range(depth):
                if x[row * depth + k] < -size[k] or x[row * depth + k] >= size[k]:
                    found[0] = 1

    return Kernel(f"beyond.{index}", record(x="i8", count="i8", depth="i8", sizes=f"{DEPTH}i8", found="i8"), run)
