"""What lowerings of elementwise kernels share: operands as kernels see them, memory without gaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qbench.ir.op import Array
from qbench.runtime.layout import Layout
from qbench.runtime.lowerings.copy import copy_instructions
from qbench.runtime.lowerings.lowering import Site
from qbench.runtime.step import Instruction, Place, row_major

__all__ = ["Gapless", "Operand", "as_stored", "gapless", "operand", "plain_layout", "spread"]


@dataclass(frozen=True)
class Operand:
    """An activation or a constant that an elementwise kernel reads.

    Parameters
    ----------
    reference
        Where it lies.
    dtype
        Of its elements in memory, in NumPy's letters.
    strides
        Elements from one index to the next, along the axes of the result in the order of the result's memory; 0 where
        it is repeated.
    """

    reference: int
    dtype: str
    strides: tuple[int, ...]


def plain_layout(layout: Layout) -> Layout:
    """The same order of axes, without a border."""
    return Layout(layout.axes)


def as_stored(array: Array) -> Array:
    """A constant as it would lie in memory if it were an activation: row-major, int8 as codes."""
    array = np.ascontiguousarray(array)
    return array.view(np.uint8) ^ np.uint8(0x80) if array.dtype == np.int8 else array


def operand(site: Site, name: str, result: Place) -> Operand:
    """An operand of an elementwise step, broadcast to its result."""
    constant = site.graph.constants.get(name)
    if constant is None:
        place = site.places[name]
        shape, strides = place.natural_shape, place.natural_strides
        return Operand(place.reference, place.dtype.str[1:], spread(shape, strides, result))
    array = as_stored(constant.array)
    strides = spread(array.shape, row_major(array.shape), result)
    return Operand(site.constant(array), array.dtype.str[1:], strides)


def spread(shape: Sequence[int], strides: Sequence[int], result: Place) -> tuple[int, ...]:
    """Strides along the axes of the result's memory of something that broadcasts to the result."""
    missing = len(result.shape) - len(shape)
    steps = [0] * missing + [stride if size != 1 else 0 for size, stride in zip(shape, strides, strict=True)]
    return tuple(steps[axis] for axis in result.axes)


@dataclass(frozen=True)
class Gapless:
    """A place without gaps that stands for another, and what brings the elements from the one to the other."""

    place: Place
    copies: Sequence[Instruction]


def gapless(site: Site, name: str, axes: tuple[int, ...] | None = None, output: bool = False) -> Gapless:
    """Memory without gaps and borders for a value: its own if it is so already, else workspace that is copied.

    Parameters
    ----------
    axes
        The order that is needed; by default the value's own.
    output
        The elements are made by the step, so the copy goes from the workspace to the value's place.
    """
    place, layout = site.places[name], site.layouts.get(name)
    wanted = axes or place.axes
    bordered = output and layout is not None and any(layout.border)
    if place.contiguous and wanted == place.axes and not bordered:
        return Gapless(place, ())
    shape = tuple(place.natural_shape[axis] for axis in wanted)
    site.workspace(place.nbytes)
    buffer = site.first_scratch + len(site.scratch) - 1
    scratch = Place(buffer, 0, place.dtype, shape, row_major(shape), wanted, place.flipped)
    if output:
        return Gapless(scratch, copy_instructions(scratch, place, layout))
    return Gapless(scratch, copy_instructions(place, scratch))
