"""Elements in order: where the first of the greatest along an axis is, and the first few in order."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from qbench.kernels.floats.rows import first_greatest, first_least
from qbench.kernels.floats.storage import storage
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import view
from qbench.kernels.split import at, share
from qbench.kernels.stack import stack_array
from qbench.kernels.walk import extents, index_of, stretch

KINDS = ("u1", "i1", "u2", "i2", "i4", "i8", "f2", "f4")
"""The types of elements that have an order here, in NumPy's letters."""

_SIGN = np.int32(31)
_MAGNITUDE = np.int32(2**31 - 1)
_LEAST = np.int32(-(2**31))
_ZERO = np.float32(0)

_CHUNK = 1024  # results at a time where they lie side by side
_ROWS = 64  # and where their elements do: these stay in the first cache


@register_jitable
def _same(x: Any) -> Any:
    return x


@register_jitable
def _wide(x: Any) -> Any:
    return np.int32(x)


@register_jitable
def _float_key(x: Any) -> Any:
    """Floats as integers of the same order; -0 is 0."""
    bits = np.float32(x + _ZERO).view(np.int32)
    return np.int32(bits ^ (np.int32(bits >> _SIGN) & _MAGNITUDE))


class _Keys(NamedTuple):
    """Integers in place of elements: the greatest is that of the element that comes first."""

    name: str
    """Part of the names of kernels."""
    element: Any
    """How elements lie in memory."""
    integer: Any
    """The type of the keys."""
    of: Callable[[Any, Any], Any]
    """``of(array, index)``"""


def _keys(kind: str, largest: bool, nan_first: bool, level: Level) -> _Keys:
    if kind[0] != "f":
        key, integer = (_same, np.int64) if kind == "i8" else (_wide, np.int32)

        @register_jitable
        def of_integer(x, i):
            return key(x[i]) if largest else ~key(x[i])

        return _Keys(kind, np.dtype(kind).type, integer, of_integer)
    kept = storage("float32" if kind == "f4" else "float16", level)
    load, nan = kept.load, _MAGNITUDE if nan_first else _LEAST

    @register_jitable
    def of_float(x, i):
        value = load(x, i)
        key = _float_key(value)
        key = key if largest else np.int32(~key)
        return key if value == value else nan

    return _Keys(kept.name, kept.dtype, np.int32, of_float)


@makes_kernels
def arg_kernel(kind: str, largest: bool, level: Level) -> Kernel:
    """Where along an axis the greatest element is, or the smallest: the first of equal ones, and the first NaN if any.

    Parameters
    ----------
    kind
        The type of the elements, in NumPy's letters.

    Returns
    -------
    Kernel
        Its fields are the references x and y (int64), sizes and strides of the results as `strided` makes them, and
        depth and step, elements along the axis and from one to the next.
    """
    keys = _keys(kind, largest, True, level)
    element, integer, key, size = keys.element, keys.integer, keys.of, np.dtype(kind).itemsize

    @register_jitable
    def one_by_one(x):
        found = 0
        for j in range(1, len(x)):
            if key(x, at(j)) > key(x, at(found)):
                found = j
        return found

    in_row = one_by_one if kind != "f4" else first_greatest if largest else first_least

    @register_jitable
    def compare(x, step, count, k, best, where):
        for c in range(count):
            here = key(x, at(c * step))
            more = here > best[c] or k == 0
            best[c] = here if more else best[c]
            where[c] = np.int32(k) if more else where[c]

    def run(args, bases, thread, threads):
        sizes, depth, step, apart = (args.n0, args.n1, args.n2, args.n3), args.depth, args.step, args.x3
        best, where = stack_array(_CHUNK, integer), stack_array(_CHUNK, np.int32)
        most = _CHUNK if apart == 1 else _ROWS
        position, end = share(args.n0 * args.n1 * args.n2 * args.n3, thread, threads, 16)
        place, count = stretch(sizes, position, end)
        while position < end:
            count = min(count, most)
            source = args.x + index_of(place, (args.x0, args.x1, args.x2, apart)) * size
            y = view(bases, args.y + index_of(place, (args.y0, args.y1, args.y2, 1)) * 8, count, np.int64)
            if step == 1:
                for c in range(count):
                    y[c] = in_row(view(bases, source + c * apart * size, depth, element))
            else:
                for k in range(depth):
                    x = view(bases, source + k * step * size, (count - 1) * apart + 1, element)
                    if apart == 1:
                        compare(x, 1, count, k, best, where)
                    else:
                        compare(x, apart, count, k, best, where)
                for c in range(count):
                    y[c] = where[c]
            position += count
            place, count = stretch(sizes, position, end)

    fields = record(x="i8", y="i8", depth="i8", step="i8", **extents("x", "y"))
    return Kernel(f"arg.{'max' if largest else 'min'}.{keys.name}", fields, run)
