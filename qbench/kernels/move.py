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
    dtype, transpose = np.dtype(f"u{item}").type, _transpose_bytes if item == 1 else _transpose

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
                transpose(x, a, xs, out, b, out_stride[4], lines, columns, flip)
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


_SQUARE = 8  # bytes of a word, and words


@register_jitable
def _transpose_bytes(x: Any, a: Any, xs: Any, out: Any, b: Any, outs: Any, lines: Any, columns: Any, flip: Any) -> None:
    """The same of bytes: squares of eight by eight as words, whose halves, quarters and bytes change places."""
    if columns < _TILE or lines < _SQUARE:
        _transpose(x, a, xs, out, b, outs, lines, columns, flip)
        return
    flips = np.uint64(flip) * np.uint64(0x0101010101010101)
    whole, wide = lines // _SQUARE * _SQUARE, columns // _SQUARE * _SQUARE
    for line in range(0, whole, _SQUARE):
        for column in range(0, wide, _SQUARE):
            at_x, at_out = a + column * xs + line, b + line * outs + column
            w0, w4 = _changed(_word(x, at_x), _word(x, at_x + 4 * xs), np.uint64(32), np.uint64(0xFFFFFFFF))
            w1, w5 = _changed(_word(x, at_x + xs), _word(x, at_x + 5 * xs), np.uint64(32), np.uint64(0xFFFFFFFF))
            w2, w6 = _changed(_word(x, at_x + 2 * xs), _word(x, at_x + 6 * xs), np.uint64(32), np.uint64(0xFFFFFFFF))
            w3, w7 = _changed(_word(x, at_x + 3 * xs), _word(x, at_x + 7 * xs), np.uint64(32), np.uint64(0xFFFFFFFF))
            w0, w1, w2, w3 = _quarters(w0, w1, w2, w3)
            w4, w5, w6, w7 = _quarters(w4, w5, w6, w7)
            _put_word(out, at_out, w0 ^ flips)
            _put_word(out, at_out + outs, w1 ^ flips)
            _put_word(out, at_out + 2 * outs, w2 ^ flips)
            _put_word(out, at_out + 3 * outs, w3 ^ flips)
            _put_word(out, at_out + 4 * outs, w4 ^ flips)
            _put_word(out, at_out + 5 * outs, w5 ^ flips)
            _put_word(out, at_out + 6 * outs, w6 ^ flips)
            _put_word(out, at_out + 7 * outs, w7 ^ flips)
    if wide < columns:
        _copy_rows(x, a + wide * xs, 1, xs, out, b + wide, outs, 1, whole, columns - wide, flip)
    if whole < lines:
        _copy_rows(x, a + whole, 1, xs, out, b + whole * outs, outs, 1, lines - whole, columns, flip)


@register_jitable
def _quarters(w0: Any, w1: Any, w2: Any, w3: Any) -> Any:
    """Four words whose halves have changed places; now the quarters of two each, and the bytes of neighbours."""
    w0, w2 = _changed(w0, w2, np.uint64(16), np.uint64(0x0000FFFF0000FFFF))
    w1, w3 = _changed(w1, w3, np.uint64(16), np.uint64(0x0000FFFF0000FFFF))
    w0, w1 = _changed(w0, w1, np.uint64(8), np.uint64(0x00FF00FF00FF00FF))
    w2, w3 = _changed(w2, w3, np.uint64(8), np.uint64(0x00FF00FF00FF00FF))
    return w0, w1, w2, w3


@register_jitable
def _changed(one: Any, other: Any, by: Any, mask: Any) -> Any:
    """Two words with the upper parts of the one and the lower parts of the other in each other's place."""
    apart = ((one >> by) ^ other) & mask
    return one ^ (apart << by), other ^ apart


@register_jitable
def _word(x: Any, start: Any) -> Any:
    """Eight bytes, the first one lowest: compilers read them at once."""
    word = np.uint64(0)
    for k in range(_SQUARE):
        word |= np.uint64(x[at(start + k)]) << np.uint64(8 * k)
    return word


@register_jitable
def _put_word(out: Any, start: Any, word: Any) -> None:
    for k in range(_SQUARE):
        out[at(start + k)] = np.uint8((word >> np.uint64(8 * k)) & np.uint64(255))


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
