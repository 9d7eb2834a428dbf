"""Buffers and places: what lies where, and which values share memory from the start."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from qbench.ir.dtypes import DType, numpy_dtype
from qbench.runtime.layout import Layout, shape_of
from qbench.runtime.lowerings.rescaling import flip, storage
from qbench.runtime.planner.lay_out import Copy, Laid, LaidOut, is_view
from qbench.runtime.step import Place


@dataclass
class Placement:
    """Where everything lies.

    Parameters
    ----------
    places
        By the names of :class:`LaidOut`.
    sizes
        Bytes of each buffer; 0 for buffer 0, which stands for address 0, and for those in the caller's memory.
    """

    places: dict[str, Place] = field(default_factory=dict[str, Place])
    sizes: list[int] = field(default_factory=lambda: [0])
    external: set[int] = field(default_factory=set[int])

    def buffer(self, size: int) -> int:
        """A new buffer."""
        self.sizes.append(size)
        return len(self.sizes) - 1


def place_all(laid_out: LaidOut) -> Placement:
    """Give every value memory: the caller's for inputs and outputs, a part of another's for views and joined values."""
    return _PlaceAll(laid_out).run()


def _new_place(shape: tuple[int, ...], layout: Layout, dtype: DType, as_given: bool) -> Place:
    memory_shape = tuple(shape[axis] for axis in layout.axes)
    top, left, bottom, right = layout.border
    outer = list(memory_shape)
    if any(layout.border):
        outer[1] += top + bottom
        outer[2] += left + right
    strides = [math.prod(outer[place + 1 :]) for place in range(len(outer))]
    kind = np.dtype(numpy_dtype(dtype)) if as_given else storage(dtype)
    start = (top * strides[1] + left * strides[2]) * kind.itemsize if any(layout.border) else 0
    return Place(
        buffer=0,
        offset=start,
        dtype=kind,
        shape=memory_shape,
        strides=tuple(strides),
        axes=layout.axes,
        flipped=bool(flip(dtype)) and not as_given,
    )


class _PlaceAll:
    def __init__(self, laid_out: LaidOut) -> None:
        self.laid_out, self.graph = laid_out, laid_out.graph
        self.result = Placement()
        self.parents = dict(self._joins())

    def run(self) -> Placement:
        for name in sorted(self.laid_out.external):
            self._new(name, external=True)
        for step in self.laid_out.steps:
            if isinstance(step, Copy):
                self._of(step.target)
                continue
            aliases = self._aliases(step)
            for name in step.task.step.outputs:
                if name in aliases:
                    self.result.places[name] = aliases[name]
                else:
                    self._of(name)
        return self.result

    def _aliases(self, laid: Laid) -> Mapping[str, Place]:
        if laid.task.lowering is None:
            return {}
        here = {name: self.result.places[place] for name, place in laid.reads.items()}
        return laid.task.lowering.alias(here, self.laid_out.layouts) or {}

    def _of(self, name: str) -> Place:
        """The place of a value, made now if it has none: a part of what it is joined into, or memory of its own."""
        if name not in self.result.places:
            if name in self.parents:
                whole, axis, start = self.parents[name]
                self.result.places[name] = self._of(whole).part(axis, start, shape_of(self.graph, name))
            else:
                self._new(name)
        return self.result.places[name]

    def _new(self, name: str, external: bool = False) -> None:
        value, layout = self.laid_out.values[name], self.laid_out.layouts[name]
        place = _new_place(shape_of(self.graph, value), layout, self.graph.types[value].dtype, external)
        size = 0 if external else _bytes(place, layout)
        number = self.result.buffer(size)
        if external:
            self.result.external.add(number)
        self.result.places[name] = replace(place, buffer=number)

    def _joins(self) -> Iterator[tuple[str, tuple[str, int, int]]]:
        """For values that are made in place in a concatenation: the whole, the axis, and where they start in it."""
        steps = [step for step in self.laid_out.steps if isinstance(step, Laid)]
        made = {name for step in steps if not is_view(step.task.lowering) for name in step.task.step.outputs}
        free = made.difference(self.laid_out.external)
        for step in reversed(steps):  # the largest concatenation first
            axis = step.task.lowering.joined() if step.task.lowering else None
            if axis is None:
                continue
            whole, start = step.task.step.outputs[0], 0
            if not _evenly(self.laid_out.layouts[whole], shape_of(self.graph, whole), axis):
                continue
            for name in step.task.step.head.inputs:
                layouts = self.laid_out.layouts
                if name in free and layouts[name] == layouts[whole] and step.reads[name] == name:
                    free.remove(name)
                    yield name, (whole, axis, start)
                start += shape_of(self.graph, name)[axis]


def _evenly(layout: Layout, shape: tuple[int, ...], axis: int) -> bool:
    """Whether rows of a part along an axis lie equally far apart, as kernels write them: not with gaps between some."""
    along = layout.axes.index(axis)
    return along == len(shape) - 1 or all(shape[outer] == 1 for outer in layout.axes[:along])


def _bytes(place: Place, layout: Layout) -> int:
    sizes = list(place.shape)
    top, left, bottom, right = layout.border
    if any(layout.border):
        sizes[1] += top + bottom
        sizes[2] += left + right
    return math.prod(sizes) * place.dtype.itemsize
