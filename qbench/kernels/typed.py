"""Functions of elements of any type, with broadcasting: comparisons, choices, casts, sums of whole numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import share
from qbench.kernels.walk import extents, index_of, onward, stretch

KINDS = {"bool": "u1", "int32": "i4", "int64": "i8", "float32": "f4"}
"""NumPy's letters for the memory of each dtype that these kernels know: a bool is a byte, 0 or 1."""
SAMPLED = {"uint8": "u1", "int16": "i2", "uint16": "i2"}
"""Those of images and sounds, which casts read; uint16 lies with its sign bit flipped."""
CODES = SAMPLED | {"int8": "u1"}
"""Those of which one can be chosen as they lie: some with their sign bit flipped, which keeps their order."""
CHOOSING = ("where", "maximum", "minimum")
"""Functions whose result is one of their operands."""


def _of(body: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
    return register_jitable(body)


def _quotient(a: Any, b: Any, c: Any) -> Any:
    """Rounded towards zero; 0 where something is divided by zero. The processor refuses the least number over -1."""
    if b == 0:
        return 0
    if b == -1:
        return -a
    down = a // b
    return down + 1 if a % b != 0 and (a < 0) != (b < 0) else down


def _floored(a: Any, b: Any, c: Any) -> Any:
    """What is left of a, of the sign of b; 0 where something is divided by zero, or by -1, as the processor refuses."""
    return 0 if b in (0, -1) else a % b


def _truncated(a: Any, b: Any, c: Any) -> Any:
    """What is left of a, of its own sign."""
    left = _floored(a, b, c)
    return left - b if left != 0 and (a < 0) != (b < 0) else left


FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "cast": _of(lambda a, b, c: a),
    "to_bool": _of(lambda a, b, c: a != 0),
    "unsigned_cast": _of(lambda a, b, c: np.int32(a) + 2**15),
    "unsigned_to_bool": _of(lambda a, b, c: a != -(2**15)),
    "is_nan": _of(lambda a, b, c: a != a),
    "logical_not": _of(lambda a, b, c: a == 0),
    "equal": _of(lambda a, b, c: a == b),
    "less": _of(lambda a, b, c: a < b),
    "less_equal": _of(lambda a, b, c: a <= b),
    "greater": _of(lambda a, b, c: a > b),
    "greater_equal": _of(lambda a, b, c: a >= b),
    "logical_and": _of(lambda a, b, c: a & b),
    "logical_or": _of(lambda a, b, c: a | b),
    "add": _of(lambda a, b, c: a + b),
    "subtract": _of(lambda a, b, c: a - b),
    "multiply": _of(lambda a, b, c: a * b),
    "divide": _of(_quotient),
    "mod": _of(_floored),
    "fmod": _of(_truncated),
    "real_fmod": _of(lambda a, b, c: np.fmod(a, b)),
    "maximum": _of(lambda a, b, c: a if a > b else b),
    "minimum": _of(lambda a, b, c: a if a < b else b),
    "where": _of(lambda a, b, c: b if a else c),
}
"""By the name of the op without its dialect, of its first operands. Whole numbers wrap around, as NumPy's do."""


@makes_kernels
def typed_kernel(function: str, kinds: tuple[str, ...], result: str) -> Kernel:
    """``y = function(a, b, c)``, converted as C does.

    Parameters
    ----------
    function
        A key of `FUNCTIONS`.
    kinds
        The types of its one, two or three operands, values of `KINDS`.
    result
        The type of y.

    Returns
    -------
    Kernel
        Its fields are the references of the operands (a, b, c) and y, sizes and strides as `strided` makes them. y has
        stride 1 along the last axis.
    """
    # an operand that the function lacks is one that the kernel reads anyhow
    dtypes = [np.dtype(kind) for kind in (*kinds, *[kinds[0]] * (3 - len(kinds)), result)]
    (of_a, of_b, of_c, of_y), (a_size, b_size, c_size, y_size) = zip(
        *((d.type, d.itemsize) for d in dtypes), strict=True
    )
    value = FUNCTIONS[function]

    def run(args, bases, thread, threads):
        sizes = args.n0, args.n1, args.n2, args.n3
        position, end = share(args.n0 * args.n1 * args.n2 * args.n3, thread, threads, 16)
        place, count = stretch(sizes, position, end)
        while position < end:
            a_step, b_step, c_step = args.a3, args.b3, args.c3
            at = index_of(place, (args.a0, args.a1, args.a2, a_step)) * a_size
            a = view(bases, args.a + at, (count - 1) * a_step + 1, of_a)
            at = index_of(place, (args.b0, args.b1, args.b2, b_step)) * b_size
            b = view(bases, args.b + at, (count - 1) * b_step + 1, of_b)
            at = index_of(place, (args.c0, args.c1, args.c2, c_step)) * c_size
            c = view(bases, args.c + at, (count - 1) * c_step + 1, of_c)
            y = view(bases, args.y + index_of(place, (args.y0, args.y1, args.y2, 1)) * y_size, count, of_y)
            for i in range(count):
                y[i] = of_y(value(a[i * a_step], b[i * b_step], c[i * c_step]))
            position += count
            place, count = onward(sizes, place, end - position)

    fields = record(**dict.fromkeys(["a", "b", "c", "y"], "i8"), **extents("a", "b", "c", "y"))
    return Kernel(f"{function}.{'.'.join(kinds)}.{result}", fields, run)
