"""Bringing a value from one place to another: another order, other gaps, a border around it, a flipped sign bit."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from qbench.ir.op import Array
from qbench.kernels.move import copy_of
from qbench.runtime.layout import Border, Layout
from qbench.runtime.lowerings.lowering import Site, instruction
from qbench.runtime.step import Instruction, Place, row_major

_ZERO = np.zeros(1, np.int64)
"""What a border's elements are copied from; the copy flips the bits that are set in the fill."""


def copy_instructions(source: Place, target: Place, layout: Layout | None = None) -> Sequence[Instruction]:
    """Copy a value.

    Parameters
    ----------
    source, target
        Places of equal shapes; the sign bit may be flipped in the one alone.
    layout
        Of the target, whose border is filled.
    """
    order = [source.axes.index(axis) for axis in target.axes]
    strides = [source.strides[axis] for axis in order]
    flip = target.sign_bit if source.flipped != target.flipped else 0
    made = [_copy(source.reference, strides, target.reference, target.shape, target, flip)]
    if layout and any(layout.border):
        made += fill_instructions(target, layout)
    return made


def copy_constant(site: Site, array: Array, target: Place) -> Instruction:
    """Copy a constant, with the sign bits of its type, to a place of its shape."""
    array = np.ascontiguousarray(array)
    strides = [row_major(array.shape)[axis] for axis in target.axes]
    flip = target.sign_bit if target.flipped else 0
    return _copy(site.constant(array), strides, target.reference, target.shape, target, flip)


def channels_by_turns(site: Site, out: Place, parts: int) -> tuple[Sequence[Place], Sequence[Instruction]]:
    """Where parts of a channels-last result are made, and how it comes to its place: channel c is of part c % parts."""
    if parts == 1:
        return [out], ()
    image, size = out.shape[:-1], out.shape[-1] // parts
    site.workspace(out.dtype.itemsize * math.prod(out.shape))
    buffer, steps = site.first_scratch + len(site.scratch) - 1, row_major(out.shape)
    places = [
        replace(out, buffer=buffer, offset=out.dtype.itemsize * part * size, shape=(*image, size), strides=steps)
        for part in range(parts)
    ]
    shape, axes = (*image, size, parts), tuple(range(len(image) + 2))
    source = replace(places[0], shape=shape, strides=(*steps, size), axes=axes)
    target = replace(out, shape=shape, strides=(*out.strides[:-1], parts, 1), axes=axes)
    return places, copy_instructions(source, target)


def fill_instructions(target: Place, layout: Layout) -> Iterator[Instruction]:
    """The fill, all over the four sides of the border."""
    fill = np.asarray(layout.fill, target.dtype)
    value = int(fill.view(f"u{fill.itemsize}"))
    for offset, shape in _sides(target, layout.border):
        start = target.reference + offset * target.dtype.itemsize
        yield _copy(_ZERO.ctypes.data, [0] * 4, start, shape, target, value)


def _sides(place: Place, border: Border) -> Iterator[tuple[int, tuple[int, ...]]]:
    (n, height, width, channels), (_, row, pixel, _) = place.shape, place.strides
    top, left, bottom, right = border
    wide = left + width + right
    yield -top * row - left * pixel, (n, top, wide, channels)
    yield height * row - left * pixel, (n, bottom, wide, channels)
    yield -left * pixel, (n, height, left, channels)
    yield width * pixel, (n, height, right, channels)


def _copy(x: int, strides: Sequence[int], out: int, shape: Sequence[int], place: Place, flip: int) -> Instruction:
    kernel, fields = copy_of(place.dtype.itemsize, x, out, shape, strides, place.strides, flip)
    return instruction(kernel, "copy", **fields)
