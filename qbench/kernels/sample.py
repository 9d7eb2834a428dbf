"""A sample of a value: every so many of its elements, in an order that does not depend on where they lie."""

from typing import Any

import numpy as np

from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import at, share

SAMPLE_RANK = 8
"""Axes that a value may have."""


@makes_kernels
def sample_kernel(item: int) -> Kernel:
    """``out[i] = x[index i * every]`` for `count` elements of 1, 2, 4 or 8 bytes, each xor `flip`.

    An index counts row-major over the first `axes` of `sizes`; x lies with strides `x_stride`, in elements, within
    `extent` elements.
    """
    dtype = np.dtype(f"u{item}").type

    def sample(args: Any, bases: Any, thread: int, threads: int) -> None:
        size, stride, flip = args.sizes, args.x_stride, dtype(args.flip)
        x, out = view(bases, args.x, args.extent, dtype), view(bases, args.out, args.count, dtype)
        first, last = share(args.count, thread, threads, 64)
        for i in range(first, last):
            rest, offset = i * args.every, np.int64(0)
            for axis in range(args.axes - 1, -1, -1):
                offset += rest % size[axis] * stride[axis]
                rest = rest // size[axis]
            out[at(i)] = x[at(offset)] ^ flip

    many = f"{SAMPLE_RANK}i8"
    arguments = record(
        x="i8", axes="i8", extent="i8", out="i8", count="i8", every="i8", sizes=many, x_stride=many, flip="i8"
    )
    return Kernel(f"sample.{item}", arguments, sample)
