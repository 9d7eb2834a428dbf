"""How elementwise kernels walk arrays of up to four axes with any strides."""

from collections.abc import Collection, Sequence
from itertools import product
from math import prod
from operator import mul
from typing import Any

from qbench.kernels.jit import register_jitable

_RANK = 4


def extents(*names: str) -> dict[str, str]:
    """Fields of a kernel for the sizes ``n0..n3`` and the element strides ``x0..x3`` of each operand named."""
    return {f"{name}{axis}": "i8" for name in ("n", *names) for axis in range(_RANK)}


def strided(shape: Sequence[int], **strides: Sequence[int]) -> dict[str, int]:
    """The values of the fields that :func:`extents` names.

    Neighbouring axes are walked as one wherever all operands allow it.

    Parameters
    ----------
    shape
        Sizes that the kernel walks, the fastest last.
    strides
        For each operand, the result last: elements from one index to the next along each axis; 0 where it is broadcast.

    Raises
    ------
    ValueError
        More than four axes are left.
    """
    merged = _merged(shape, *strides.values())
    if len(merged) > _RANK:
        raise ValueError(f"{len(merged)} axes cannot be walked, only {_RANK}")
    return _fields(merged, strides)


def walks(shape: Sequence[int], **strides: Sequence[int]) -> list[tuple[dict[str, int], dict[str, int]]]:
    """Several walks where the axes are too many for one: where each operand begins, in elements, and its fields.

    Parameters
    ----------
    shape, strides
        As for :func:`strided`, but any number of axes may be left.
    """
    merged = _merged(shape, *strides.values())
    by_size = sorted(range(len(merged) - 1), key=lambda axis: merged[axis][0])
    alone = set(by_size[: max(0, len(merged) - _RANK)])  # the smallest but the last, along which elements lie in rows
    outer, inner = ([part for axis, part in enumerate(merged) if (axis in alone) is apart] for apart in (True, False))
    fields = _fields(inner, strides)
    found: list[tuple[dict[str, int], dict[str, int]]] = []
    for at in product(*(range(size) for size, *_ in outer)):
        begins = [sum(map(mul, at, steps)) for steps in zip(*(steps for _, *steps in outer), strict=True)]
        found.append((dict(zip(strides, begins or [0] * len(strides), strict=True)), fields))
    return found


def _merged(shape: Sequence[int], *strides: Sequence[int]) -> list[tuple[int, ...]]:
    """Size and strides of the axes that are left."""
    merged: list[tuple[int, ...]] = []
    for size, *steps in zip(shape, *strides, strict=True):
        if size == 1:
            continue
        if merged and all(outer == size * step for outer, step in zip(merged[-1][1:], steps, strict=True)):
            merged[-1] = (merged[-1][0] * size, *steps)
        else:
            merged.append((size, *steps))
    if not merged or merged[-1][-1] != 1:  # the last operand, the result, is written in rows of stride 1
        merged.append((1,) * (1 + len(strides)))
    return merged


def _fields(merged: list[tuple[int, ...]], strides: Collection[str]) -> dict[str, int]:
    merged = [(1, *(0 for _ in strides))] * (_RANK - len(merged)) + merged
    return {
        f"{name}{axis}": int(merged[axis][position])
        for position, name in enumerate(("n", *strides))
        for axis in range(_RANK)
    }


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Element strides of an array in row-major order."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


@register_jitable
def stretch(sizes: Any, first: Any, end: Any) -> Any:
    """The four indices of the element number `first`, and how many up to `end` lie on the last axis from there."""
    n1, n2, n3 = max(sizes[1], 1), max(sizes[2], 1), max(sizes[3], 1)
    row = first // n3
    i3 = first - row * n3
    return (row // (n1 * n2), row // n2 % n1, row % n2, i3), min(n3 - i3, end - first)


@register_jitable
def onward(sizes: Any, place: Any, left: Any) -> Any:
    """What `stretch` says of the row behind that of `place`, with so many elements left; it divides by nothing."""
    _, n1, n2, n3 = sizes
    i0, i1, i2, _ = place
    i2 += 1
    if i2 == n2:
        i2, i1 = 0, i1 + 1
        if i1 == n1:
            i1, i0 = 0, i0 + 1
    return (i0, i1, i2, 0), min(n3, left)


@register_jitable
def index_of(place: Any, strides: Any) -> Any:
    """Where the element with four indices lies, in elements."""
    return place[0] * strides[0] + place[1] * strides[1] + place[2] * strides[2] + place[3] * strides[3]


@register_jitable
def extent(sizes: Any, strides: Any) -> Any:
    """How many elements lie from the first to the last one of four axes."""
    return index_of((sizes[0] - 1, sizes[1] - 1, sizes[2] - 1, sizes[3] - 1), strides) + 1
