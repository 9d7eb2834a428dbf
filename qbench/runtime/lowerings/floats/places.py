"""What the lowerings of float ops share: places seen in another order, scratch memory, clamps, conversions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from qbench.ir.graph import Graph
from qbench.ir.op import Epilogue, bind
from qbench.kernels.floats.convert import convert_kernel
from qbench.kernels.floats.storage import FloatType
from qbench.kernels.walk import strided
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, shape_of
from qbench.runtime.lowerings.lowering import Refused, Site, instruction
from qbench.runtime.lowerings.operands import as_stored
from qbench.runtime.lowerings.rescaling import flip
from qbench.runtime.step import Instruction, Place


def in_order(place: Place, axes: Sequence[int]) -> Place:
    """The same memory, its axes named in another order."""
    order = [place.axes.index(axis) for axis in axes]
    shape, strides = tuple(place.shape[i] for i in order), tuple(place.strides[i] for i in order)
    return replace(place, shape=shape, strides=strides, axes=tuple(axes))


def borderless(layout: Layout) -> Layout:
    """The same order, without a border."""
    return Layout(layout.axes)


def float_type(graph: Graph, *values: str) -> FloatType:
    """The type of values that must have one of those that float kernels know."""
    types = {graph.types[value].dtype for value in values}
    if types == {"float32"}:
        return "float32"
    if types == {"float16"}:
        return "float16"
    raise Refused(f"there is no kernel for {', '.join(sorted(types))}")


def need_work(graph: Graph, *values: str) -> None:
    """Refuse values without elements."""
    if any(math.prod(shape_of(graph, value)) == 0 for value in values):
        raise Refused("it has nothing to compute")


def clamp(step: Fused) -> tuple[float, float]:
    """The bounds that a step's clamps set; infinite where there is none."""
    low, high = -math.inf, math.inf
    for node in step.followers(Epilogue.CLAMP):
        least, most = bind(node).bounds or (-math.inf, math.inf)
        low, high = max(low, least), min(max(high, least), most)
        low = min(low, most)
    return low, high


def scratch(site: Site, shape: Sequence[int], axes: Sequence[int]) -> Place:
    """float32 memory for one step."""
    start = site.workspace(4 * math.prod(shape))
    return replace(Place.dense(start >> 48, np.dtype(np.float32), tuple(shape)), axes=tuple(axes))


def convert(site: Site, source: Place, target: Place) -> Instruction:
    """A copy between places of one order, whatever their types."""
    given, wanted = (_name(place) for place in (source, target))
    fields = strided(source.shape, x=source.strides, y=target.strides)
    kernel = convert_kernel(given, wanted, site.level)
    return instruction(kernel, "convert", x=source.reference, y=target.reference, **fields)


def widened(site: Site, place: Place, gaps: bool = True) -> tuple[Place, list[Instruction]]:
    """The place as float32 with an even pitch, or without any gaps, and how it gets there."""
    if fits(place, gaps):
        return place, []
    wide = scratch(site, place.shape, place.axes)
    return wide, [convert(site, place, wide)]


def result(site: Site, place: Place, gaps: bool = True) -> tuple[Place, list[Instruction]]:
    """float32 memory like `widened`'s for a step's result, and how it gets from there to its place."""
    if fits(place, gaps):
        return place, []
    wide = scratch(site, place.shape, place.axes)
    return wide, [convert(site, wide, place)]


class Rows(NamedTuple):
    """The last axis of a step's input and result as rows, or the last axes."""

    dtype: FloatType
    """float32 where only a copy has rows."""
    fields: Mapping[str, int]
    """Of a kernel: x, y, rows, columns, x_row and y_row."""
    before: list[Instruction]
    after: list[Instruction]
    """Copies to and from."""


def rows_of(site: Site, source: str, output: str, layout: Layout, dtype: FloatType, axes: int = 1) -> Rows:
    """Rows of a type, each of so many last axes, of two values of one layout; copies where they lie otherwise."""
    data, made = (in_order(site.places[name], layout.axes) for name in (source, output))
    before, after, gaps = list[Instruction](), list[Instruction](), axes == 1
    even = None not in (data.pitch, made.pitch) and (data.strides[-1], made.strides[-1]) == (1, 1)
    if not (even if gaps else data.contiguous and made.contiguous) or _name(data) != dtype:
        dtype = "float32"
        data, before = widened(site, data, gaps)
        made, after = result(site, made, gaps)
    columns = math.prod(data.shape[-axes:])
    fields = {
        "x": data.reference, "y": made.reference, "rows": math.prod(data.shape[:-axes]), "columns": columns,
        "x_row": (data.pitch or 0) if gaps else columns, "y_row": (made.pitch or 0) if gaps else columns,
    }  # fmt: skip
    return Rows(dtype, fields, before, after)


def fits(place: Place, gaps: bool = True) -> bool:
    """Whether a place is float32 with an even pitch, or without any gaps."""
    if _name(place) != "float32":
        return False
    return place.contiguous or (gaps and 1 in (place.strides[-1], place.shape[-1]) and place.pitch is not None)


def strides_within(place: Place, shape: Sequence[int], axes: Sequence[int]) -> tuple[int, ...]:
    """Strides that walk a place as part of a broadcast result: 0 along the axes that it repeats.

    Parameters
    ----------
    place
        Of an operand, of any rank up to the result's.
    shape
        Of the result, in the order of its axes.
    axes
        The axis at each place in the result's memory.
    """
    ahead = len(shape) - len(place.shape)
    by_axis = [0] * ahead + [0] * len(place.shape)
    for position, axis in enumerate(place.axes):
        by_axis[ahead + axis] = place.strides[position] if place.shape[position] != 1 else 0
    return tuple(by_axis[axis] for axis in axes)


def operand_place(site: Site, name: str) -> Place:
    """Where an operand lies, a constant as well."""
    return constant_place(site, name) if name in site.graph.constants else site.places[name]


def constant_place(site: Site, name: str, axes: Sequence[int] | None = None) -> Place:
    """A constant of the graph, its axes in this order, as a place; its memory belongs to the program."""
    constant = site.graph.constants[name]
    array = as_stored(constant.array)
    array = array if axes is None else np.ascontiguousarray(array.transpose(axes))
    place = Place.dense(0, array.dtype, array.shape)
    return replace(place, offset=site.constant(array), flipped=bool(flip(constant.dtype)))


def _name(place: Place) -> FloatType:
    return "float16" if place.dtype == np.float16 else "float32"
