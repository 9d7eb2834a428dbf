"""The greatest and the smallest of integers along axes, their sums and products."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import at, share

IntegerKind = Literal["u1", "i2", "i4", "i8"]
IntegerReduction = Literal["max", "min", "sum", "prod"]

_COMBINE: dict[IntegerReduction, Callable[[Any, Any], Any]] = {
    "max": register_jitable(lambda a, b: max(a, b)),
    "min": register_jitable(lambda a, b: min(a, b)),
    "sum": register_jitable(lambda a, b: a + b),
    "prod": register_jitable(lambda a, b: a * b),
}


@makes_kernels
def integer_reduction_kernel(function: IntegerReduction, kind: IntegerKind) -> Kernel:
    """``y[i, k] = function(x[i, :, k])``, of the sizes outer, depth and inner, without gaps; sums wrap around."""
    dtype, item, chunk = np.dtype(kind).type, np.dtype(kind).itemsize, 1024
    combine = _COMBINE[function]

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
                made = np.int64(x[0])
                for j in range(1, depth):
                    made = combine(made, x[at(j)])
                y[0] = made
                continue
            for j in range(depth):
                x = view(bases, source + j * inner * item, count, dtype)
                if j == 0:
                    for k in range(count):
                        y[at(k)] = x[at(k)]
                else:
                    for k in range(count):
                        y[at(k)] = combine(y[at(k)], x[at(k)])

    fields = record(**dict.fromkeys(["x", "y", "outer", "depth", "inner"], "i8"))
    return Kernel(f"reduce.{function}.{kind}", fields, run)
