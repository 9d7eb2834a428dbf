"""The greatest and the smallest of integers along axes."""

from typing import Any, Literal

import numpy as np

from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import at, share

IntegerKind = Literal["u1", "i2", "i4", "i8"]


@makes_kernels
def extreme_kernel(kind: IntegerKind, largest: bool) -> Kernel:
    """``y[i, k] = max(x[i, :, k])``, or the smallest; of the sizes outer, depth and inner, without gaps."""
    dtype, item, chunk = np.dtype(kind).type, np.dtype(kind).itemsize, 1024

    @register_jitable
    def further(a, b):
        return max(a, b) if largest else min(a, b)

    def run(args: Any, bases: Any, thread: int, threads: int) -> None:
        depth, inner = args.depth, args.inner
        chunks = (inner + chunk - 1) // chunk
        for unit in range(*share(args.outer * chunks, thread, threads)):
            outer, first = unit // chunks, unit % chunks * chunk
            count = min(chunk, inner - first)
            source = args.x + (outer * depth * inner + first) * item
            y = view(bases, args.y + (outer * inner + first) * item, count, dtype)
            if inner == 1:
                x = view(bases, source, depth, dtype)
                most = x[0]
                for j in range(1, depth):
                    most = further(most, x[at(j)])
                y[0] = most
                continue
            for j in range(depth):
                x = view(bases, source + j * inner * item, count, dtype)
                if j == 0:
                    for k in range(count):
                        y[at(k)] = x[at(k)]
                else:
                    for k in range(count):
                        y[at(k)] = further(y[at(k)], x[at(k)])

    fields = record(**dict.fromkeys(["x", "y", "outer", "depth", "inner"], "i8"))
    return Kernel(f"extreme.{'max' if largest else 'min'}.{kind}", fields, run)
