"""Whether a value holds NaN, which no integer stands for."""

from functools import cache
from typing import Any

import numpy as np

from qbench.kernels.kernel import Kernel, record
from qbench.kernels.memory import view
from qbench.kernels.split import at, share


@cache
def nan_kernel(dtype: np.dtype[Any]) -> Kernel:
    """Sets the int64 at `found` to 1 if a float is NaN among `rows` of `inner` without gaps, `stride` apart, at x."""
    bits = np.dtype(f"u{dtype.itemsize}").type
    sign, infinity = bits(1 << 8 * dtype.itemsize - 1), np.array(np.inf, dtype).view(bits)[()]
    magnitude = bits(~sign)

    def nan(args: Any, bases: Any, thread: int, threads: int) -> None:
        rows, inner, stride = args.rows, args.inner, args.stride
        x, found = view(bases, args.x, (rows - 1) * stride + inner, bits), view(bases, args.found, 1, np.int64)
        first, last = share(rows * inner, thread, threads, inner)
        for start in range(first // inner * stride, last // inner * stride, stride):
            largest = bits(0)
            for j in range(inner):
                largest = max(largest, bits(x[at(start + j)] & magnitude))
            if largest > infinity:
                found[0] = 1

    return Kernel(f"nan.{dtype}", record(x="i8", rows="i8", inner="i8", stride="i8", found="i8"), nan)
