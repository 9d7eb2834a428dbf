"""Elements in order: where the first of the greatest along an axis is, and the first few in order."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from qbench.kernels.floats.rows import first_greatest, first_least
from qbench.kernels.floats.storage import storage
from qbench.kernels.jit import register_jitable
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
_LAST = 2**32 - 1

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


@makes_kernels
def topk_kernel(kind: str, largest: bool, level: Level) -> Kernel:
    """The first few elements along an axis in order, and where they are; NaN comes last, of equal ones the first.

    Parameters
    ----------
    kind
        The type of the elements, in NumPy's letters; not "i8".

    Returns
    -------
    Kernel
        Its fields are the references x, v and i (values and int64 indices) and heap (int64[k] for each line); sizes and
        strides of the lines as `strided` makes them; depth and k, elements of a line before and after; and x_step,
        v_step and i_step, elements from one to the next.
    """
    keys = _keys(kind, largest, False, level)
    element, key, size = keys.element, keys.of, np.dtype(kind).itemsize

    @register_jitable
    def ranked(x, j, step):
        """The key, and below it what is greater the earlier an element comes: no two are equal."""
        return (np.int64(key(x, at(j * step))) << 32) | (_LAST - j)

    def run(args, bases, thread, threads):
        sizes, depth, k, step = (args.n0, args.n1, args.n2, args.n3), args.depth, args.k, args.x_step
        total = args.n0 * args.n1 * args.n2 * args.n3
        for line in range(*share(total, thread, threads)):
            place, _ = stretch(sizes, line, total)
            start = args.x + index_of(place, (args.x0, args.x1, args.x2, args.x3)) * size
            x = view(bases, start, (depth - 1) * step + 1, element)
            heap = view(bases, args.heap + line * k * 8, k, np.int64)
            for j in range(k):
                heap[j] = ranked(x, j, step)
            for j in range(k // 2 - 1, -1, -1):
                _sink(heap, j, k)
            for j in range(k, depth):
                new = ranked(x, j, step)
                if new > heap[0]:
                    heap[0] = new
                    _sink(heap, 0, k)
            for last in range(k - 1, 0, -1):
                heap[0], heap[last] = heap[last], heap[0]
                _sink(heap, 0, last)
            start = args.v + index_of(place, (args.v0, args.v1, args.v2, args.v3)) * size
            values = view(bases, start, (k - 1) * args.v_step + 1, element)
            start = args.i + index_of(place, (args.i0, args.i1, args.i2, args.i3)) * 8
            indices = view(bases, start, (k - 1) * args.i_step + 1, np.int64)
            for j in range(k):
                index = _LAST - (heap[j] & _LAST)
                indices[j * args.i_step] = index
                values[j * args.v_step] = x[index * step]

    names = ("x", "v", "i", "heap", "depth", "k", "x_step", "v_step", "i_step")
    fields = record(**dict.fromkeys(names, "i8"), **extents("x", "v", "i"))
    return Kernel(f"topk.{'largest' if largest else 'smallest'}.{keys.name}", fields, run)


@register_jitable
def _sink(heap: Any, at: Any, count: Any) -> None:
    """Bring an element down to where none of those below is smaller."""
    moved = heap[at]
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count and heap[below + 1] < heap[below]:
            below += 1
        if moved <= heap[below]:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = moved
