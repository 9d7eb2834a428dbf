"""A function of two elements, with broadcasting: a stride of 0 repeats an operand along an axis."""

from collections.abc import Callable
from typing import Any

import numpy as np

from qbench.kernels.floats.storage import FloatType, storage
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import view
from qbench.kernels.split import share
from qbench.kernels.walk import extents, index_of, onward, stretch


def _operator(body: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return register_jitable(error_model="numpy")(body)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "add": _operator(lambda a, b: a + b),
    "subtract": _operator(lambda a, b: a - b),
    "multiply": _operator(lambda a, b: a * b),
    "divide": _operator(lambda a, b: a / b),
    "maximum": _operator(lambda a, b: a if a > b or a != a else b),
    "minimum": _operator(lambda a, b: a if a < b or a != a else b),
    "power": _operator(lambda a, b: np.power(a, b)),
    "squared_difference": _operator(lambda a, b: (a - b) * (a - b)),
    "square": _operator(lambda a, b: a * a),
    "cube": _operator(lambda a, b: np.float32(np.float64(a) * np.float64(a) * np.float64(a))),
    "prelu": _operator(lambda a, b: a if a > np.float32(0) else a * b),
}
"""``f(a, b) -> float32`` by the name of the op without its dialect; and two powers that products make."""


@makes_kernels
def binary_kernel(operator: str, dtype: FloatType, level: Level) -> Kernel:
    """``y = min(max(operator(a, b), low), high)``.

    Parameters
    ----------
    operator
        A key of `OPERATORS`.
    dtype
        Of all operands.
    level
        Decides how float16 is converted.

    Returns
    -------
    Kernel
        Its fields are the references a, b and y, sizes and strides as `strided` makes them, low and high (infinite
        where nothing bounds the result). y has stride 1 along the last axis.
    """
    apply, kept = OPERATORS[operator], storage(dtype, level)
    kind, size, load, store = kept.dtype, kept.size, kept.load, kept.store

    def run(args, bases, thread, threads):
        sizes = args.n0, args.n1, args.n2, args.n3
        position, end = share(args.n0 * args.n1 * args.n2 * args.n3, thread, threads, 16)
        low, high = args.low, args.high
        place, count = stretch(sizes, position, end)
        while position < end:
            at = index_of(place, (args.a0, args.a1, args.a2, args.a3))
            a = view(bases, args.a + at * size, (count - 1) * args.a3 + 1, kind)
            at = index_of(place, (args.b0, args.b1, args.b2, args.b3))
            b = view(bases, args.b + at * size, (count - 1) * args.b3 + 1, kind)
            at = index_of(place, (args.y0, args.y1, args.y2, 1))
            y = view(bases, args.y + at * size, count, kind)
            if args.a3 == 1 and args.b3 == 1:
                for i in range(count):
                    store(y, i, min(max(apply(load(a, i), load(b, i)), low), high))
            elif args.a3 == 1 and args.b3 == 0:
                scalar = load(b, 0)
                for i in range(count):
                    store(y, i, min(max(apply(load(a, i), scalar), low), high))
            elif args.a3 == 0 and args.b3 == 1:
                scalar = load(a, 0)
                for i in range(count):
                    store(y, i, min(max(apply(scalar, load(b, i)), low), high))
            else:
                for i in range(count):
                    store(y, i, min(max(apply(load(a, i * args.a3), load(b, i * args.b3)), low), high))
            position += count
            place, count = onward(sizes, place, end - position)

    arguments = record(a="i8", b="i8", y="i8", **extents("a", "b", "y"), low="f4", high="f4")
    return Kernel(f"float.binary.{operator}.{kept.name}", arguments, run)
