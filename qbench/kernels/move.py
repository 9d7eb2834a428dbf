"""Elements moved as they are: copies between any two strided places, and gathers through tables of offsets."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import at, share

RANK = 6
"""Axes of a copy; enough for depth_to_space, which splits two of four axes."""

_TILE = 16
_FEW = 8
"""So many neighbours and more are copied together, though each row then costs a loop of its own."""
_LINES = 256
"""So many pixels of a few channels stay in the first cache until all channels are there."""
_WORDS = (2, 4, 8)
"""Bytes that are copied as one."""


def copy_fields(shape: Sequence[int], x_strides: Sequence[int], out_strides: Sequence[int]) -> dict[str, Any]:
    """The sizes and strides of :func:`copy_kernel` for one copy, in the order that is fastest.

    Parameters
    ----------
    shape
        What is copied, any rank; after axes that lie together in both places are merged, at most 6 remain.
    x_strides, out_strides
        Elements from one index to the next, of source and target, per axis. A source's may be 0 (repeat) or negative
        (``x`` then refers to its element at the lowest address).

    Raises
    ------
    ValueError
        More than 6 axes remain.
    """
    start = sum((size - 1) * -stride for size, stride in zip(shape, x_strides, strict=True) if stride < 0)
    axes = [axis for axis in zip(shape, x_strides, out_strides, strict=True) if axis[0] != 1]
    axes.sort(key=lambda axis: -axis[2])
    merged: list[tuple[int, int, int]] = []
    for size, x, out in axes:
        if merged and merged[-1][1] == size * x and merged[-1][2] == size * out:
            merged[-1] = (merged[-1][0] * size, x, out)
        else:
            merged.append((size, x, out))
    if merged and merged[-1][1] != 1:  # a transposition: the source's inner axis comes next to the target's
        merged[:-1] = sorted(merged[:-1], key=lambda axis: axis[1] == 1)
    if len(merged) > RANK:
        raise ValueError(f"a copy of shape {tuple(shape)} has {len(merged)} axes that cannot be merged, above {RANK}")
    merged = [(1, 0, 0)] * (RANK - len(merged)) + merged
    size, x, out = zip(*merged, strict=True)
    return {"sizes": size, "x_stride": x, "out_stride": out, "x_start": start if all(shape) else 0}


def copy_of(
    item: int,
    x: int,
    out: int,
    shape: Sequence[int],
    x_strides: Sequence[int],
    out_strides: Sequence[int],
    flip: int = 0,
) -> tuple[Kernel, dict[str, Any]]:
    """The kernel and its fields for one copy; a few elements that lie side by side in both places are copied as one.

    Parameters
    ----------
    item
        Bytes of an element.
    x, out
        References of the elements at the lowest addresses.
    shape, x_strides, out_strides
        As for :func:`copy_fields`.
    flip
        Bits of an element.
    """
    for axis, size in enumerate(shape):
        word, beside = item * size, x_strides[axis] == out_strides[axis] == 1 < size
        others = [step for steps in (x_strides, out_strides) for step in (*steps[:axis], *steps[axis + 1 :])]
        if beside and word in _WORDS and x % word == out % word == 0 and not any(step % size for step in others):
            flip = int.from_bytes(flip.to_bytes(item, "little") * size, "little", signed=True)
            item, shape = word, [*shape[:axis], 1, *shape[axis + 1 :]]
            x_strides, out_strides = ([step // size for step in steps] for steps in (x_strides, out_strides))
            break
    fields = copy_fields(shape, x_strides, out_strides)
    return copy_kernel(item), {"x": x, "out": out, "flip": flip, **fields}


@makes_kernels
def copy_kernel(item: int) -> Kernel:
    """Copies elements of 1, 2, 4 or 8 bytes between strided places, each xor `flip`: the sign bit, or nothing."""
    dtype = np.dtype(f"u{item}").type

    def copy(args, bases, thread, threads):
        size, x_stride, out_stride, flip = args.sizes, args.x_stride, args.out_stride, dtype(args.flip)
        rows, columns, xs, outs = size[0] * size[1] * size[2] * size[3] * size[4], size[5], x_stride[5], out_stride[5]
        if rows * columns == 0:
            return
        x = view(bases, args.x, _extent(size, x_stride), dtype)
        out = view(bases, args.out, _extent(size, out_stride), dtype)
        if rows == 1:
            first, end = share(columns, thread, threads, 64)
            _copy_rows(x, args.x_start + first * xs, 0, xs, out, first * outs, 0, outs, 1, end - first, flip)
            return
        row, end = share(rows, thread, threads)
        while row < end:
            a, b, rest = args.x_start, np.int64(0), row
            for k in range(4, -1, -1):
                digit = rest % size[k]
                rest = rest // size[k]
                a, b = a + digit * x_stride[k], b + digit * out_stride[k]
            lines = min(size[4] - row % size[4], end - row)
            if xs != 1 and x_stride[4] == 1 and outs == 1:
                _transpose(x, a, xs, out, b, out_stride[4], lines, columns, flip)
            else:
                _copy_rows(x, a, x_stride[4], xs, out, b, out_stride[4], outs, lines, columns, flip)
            row += lines

    axes = dict.fromkeys(("sizes", "x_stride", "out_stride"), f"{RANK}i8")
    return Kernel(f"copy.{item}", record(x="i8", out="i8", **axes, x_start="i8", flip="i8"), copy)


@register_jitable
def _extent(size: Any, stride: Any) -> Any:
    last = 0
    for k in range(RANK):
        last += (size[k] - 1) * abs(stride[k])
    return last + 1


@register_jitable
def _copy_rows(
    x: Any, a: Any, x_row: Any, xs: Any, out: Any, b: Any, out_row: Any, outs: Any, rows: Any, count: Any, flip: Any
) -> None:
    if count < _FEW <= rows:
        _copy_columns(x, a, x_row, xs, out, b, out_row, outs, rows, count, flip)
    elif xs == 1 and outs == 1:
        for row in range(rows):
            for i in range(count):
                out[at(b + row * out_row + i)] = x[at(a + row * x_row + i)] ^ flip
    else:
        for row in range(rows):
            for i in range(count):
                out[at(b + row * out_row + i * outs)] = x[at(a + row * x_row + i * xs)] ^ flip


@register_jitable
def _copy_columns(
    x: Any, a: Any, x_row: Any, xs: Any, out: Any, b: Any, out_row: Any, outs: Any, rows: Any, count: Any, flip: Any
) -> None:
    """A few columns one by one, of so many rows at a time that these stay in the first cache."""
    for row in range(0, rows, _LINES):
        for j in range(count):
            start, to = a + j * xs, b + j * outs
            if x_row == 1:
                for i in range(row, min(row + _LINES, rows)):
                    out[at(to + i * out_row)] = x[at(start + i)] ^ flip
            else:
                for i in range(row, min(row + _LINES, rows)):
                    out[at(to + i * out_row)] = x[at(start + i * x_row)] ^ flip


@register_jitable
def _transpose(x: Any, a: Any, xs: Any, out: Any, b: Any, outs: Any, lines: Any, columns: Any, flip: Any) -> None:
    """``out[line, column] = x[column, line]``, in tiles that stay in the first cache; few columns one by one."""
    if columns < _TILE:
        _copy_columns(x, a, 1, xs, out, b, outs, 1, lines, columns, flip)
        return
    for column in range(0, columns, _TILE):
        wide = min(_TILE, columns - column)
        for line in range(0, lines, _TILE):
            for i in range(line, min(line + _TILE, lines)):
                source, target = a + column * xs + i, b + i * outs + column
                for j in range(wide):
                    out[at(target + j)] = x[at(source + j * xs)] ^ flip


@makes_kernels
def gather_kernel(item: int) -> Kernel:
    """``out[i, j, k, l] = x[table0[i] + table1[j] + table2[k] + l]``; constant padding, nearest resize, tiling.

    Tables hold int64 offsets in elements of 1, 2, 4 or 8 bytes; where one is negative the elements are `filler`. The
    last axis is a run of `sizes[3]` neighbours, with `before` and `after` elements of filler at its ends; out lies with
    strides `out_stride`, and runs without gaps.
    """
    dtype = np.dtype(f"u{item}").type

    def gather(args, bases, thread, threads):
        size, out_stride, run, fill = args.sizes, args.out_stride, args.sizes[3], dtype(args.filler)
        before, after = args.before, args.after
        whole = before + run + after
        if size[0] * size[1] * size[2] * whole == 0:
            return
        x = view(bases, args.x, args.extent, dtype)
        last = (size[0] - 1) * out_stride[0] + (size[1] - 1) * out_stride[1] + (size[2] - 1) * out_stride[2]
        out = view(bases, args.out, last + whole, dtype)
        table0 = view(bases, args.table0, size[0], np.int64)
        table1 = view(bases, args.table1, size[1], np.int64)
        table2 = view(bases, args.table2, size[2], np.int64)
        first, end = share(size[0] * size[1], thread, threads)
        for index in range(first, end):
            i, j = index // size[1], index % size[1]
            to = i * out_stride[0] + j * out_stride[1]
            if table0[i] < 0 or table1[j] < 0:
                for k in range(size[2]):
                    _fill_row(out, to + k * out_stride[2], whole, fill)
                continue
            base = table0[i] + table1[j]
            for k in range(size[2]):
                target = to + k * out_stride[2]
                if table2[k] < 0:
                    _fill_row(out, target, whole, fill)
                else:
                    start, target = base + table2[k], target + before
                    _fill_row(out, target - before, before, fill)
                    row, copied = x[start : start + run], out[target : target + run]
                    for n in range(run):
                        copied[n] = row[n]
                    _fill_row(out, target + run, after, fill)

    names = ("x", "extent", "out", "table0", "table1", "table2", "filler", "before", "after")
    fields = record(**dict.fromkeys(names, "i8"), sizes="4i8", out_stride="3i8")
    return Kernel(f"gather.{item}", fields, gather)


@register_jitable
def _fill_row(out: Any, start: Any, run: Any, fill: Any) -> None:
    for i in range(run):
        out[at(start + i)] = fill
