"""Ops that only say how the same memory is to be read: no instructions, unless a gap has to be closed first."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.levels import Level
from qbench.ops.float.reshape import Reshaping, Transpose
from qbench.ops.float.select import Split, StridedSlice
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST, Layout, row_major, shape_of
from qbench.runtime.lowerings.copy import copy_instructions
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, lowers
from qbench.runtime.lowerings.operands import plain_layout
from qbench.runtime.step import Instruction, Place
from qbench.runtime.step import row_major as dense_strides


class _View(Lowering):
    """Reads one activation."""

    @property
    def source(self) -> str:
        return self.step.head.inputs[0]

    def instructions(self, site: Site) -> Sequence[Instruction]:
        """Nothing has to be done."""
        return ()


@lowers(Reshaping)
class ReshapeLowering(_View):
    """The same memory under another shape: as it lies, where axes that become others lie side by side, or row-major."""

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        output, here = self.step.outputs[0], plain_layout(home[self.source])
        before, after = shape_of(self.graph, self.source), shape_of(self.graph, output)
        axes = reshaped_axes(before, after, here.axes)
        if axes is None:
            return Layouts({self.source: row_major(len(before))}, {output: row_major(len(after))})
        return Layouts({self.source: here}, {output: Layout(axes)})

    def alias(self, places: Mapping[str, Place], layouts: Mapping[str, Layout]) -> Mapping[str, Place] | None:
        """The same memory, where it has no gaps."""
        output, place = self.step.outputs[0], places[self.source]
        if not place.contiguous:
            return None
        axes = layouts[output].axes
        shape = tuple(shape_of(self.graph, output)[axis] for axis in axes)
        return {output: replace(place, shape=shape, strides=dense_strides(shape), axes=axes)}

    def instructions(self, site: Site) -> Sequence[Instruction]:
        """A copy that closes the gaps, where there are any."""
        source, target = site.places[self.source], site.places[self.step.outputs[0]]
        if source.contiguous:
            return []
        strides = dense_strides(source.shape)
        return copy_instructions(source, replace(target, shape=source.shape, strides=strides, axes=source.axes))


def reshaped_axes(before: tuple[int, ...], after: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...] | None:
    """In which order the axes of another shape lie in the same memory; None where no order is right.

    Parameters
    ----------
    before, after
        Two shapes of as many elements.
    axes
        In which order those of the first lie in memory.
    """
    order = [axis for axis in axes if before[axis] != 1]
    if order == sorted(order):
        return row_major(len(after)).axes
    if 0 in before:
        return None
    old, new = deque(sorted(order)), deque(axis for axis, size in enumerate(after) if size != 1)
    groups: dict[int, tuple[list[int], list[int]]] = {}  # the fewest axes that become others, by their first
    while old:
        some, others = [old.popleft()], [new.popleft()]
        here, there = before[some[0]], after[others[0]]
        while here != there:
            if here < there:
                some.append(old.popleft())
                here *= before[some[-1]]
            else:
                others.append(new.popleft())
                there *= after[others[-1]]
        groups[some[0]] = some, others
    found = [axis for axis, size in enumerate(after) if size == 1]
    while order:
        some, others = groups.get(order[0], ([], []))
        if not some or order[: len(some)] != some:
            return None
        found, order = [*found, *others], order[len(some) :]
    return tuple(found)


@lowers(Transpose)
class TransposeLowering(_View):
    """Axes change their names, elements stay where they are."""

    renames = True

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, Transpose)
        self._axes = op.axes

    def before(self, layout: Layout) -> Layout:
        """Without a border: who wants one makes a copy."""
        return Layout(tuple(self._axes[axis] for axis in layout.axes))

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        here = home[self.source]
        if any(here.border):
            raise AssertionError("values with a border have one reader")
        renamed = tuple(self._axes.index(axis) for axis in here.axes)
        return Layouts({self.source: here}, {self.step.outputs[0]: Layout(renamed)})

    def alias(self, places: Mapping[str, Place], layouts: Mapping[str, Layout]) -> Mapping[str, Place]:
        """The same memory."""
        output = self.step.outputs[0]
        return {output: replace(places[self.source], axes=layouts[output].axes)}


@lowers(Split, StridedSlice)
class SliceLowering(_View):
    """Parts of an image, in the order in which it lies, as long as what is innermost stays side by side."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        if graph.types[self.source].rank != 4:
            raise Refused("only images are cut in place")
        self.cuts = self._cuts()
        if any(cut.step < 1 for cuts in self.cuts for cut in cuts) or any(cuts[1].step != 1 for cuts in self.cuts):
            raise Refused("a part with gaps between its channels, or in reverse, is not taken in place")

    def _cuts(self) -> list[tuple[range, ...]]:
        """For each output, the positions that it takes along each axis."""
        op, whole = bind(self.step.head), [slice(None)] * 4
        if isinstance(op, Split):
            edges = (0, *op.cuts, None)
            slices = [{op.axis: slice(start, end)} for start, end in pairwise(edges)]
        else:
            assert isinstance(op, StridedSlice)
            parts = zip(op.axes, op.begin, op.end, op.strides, strict=True)
            slices = [{axis % 4: slice(*cut) for axis, *cut in parts}]
        shape = shape_of(self.graph, self.source)
        return [
            tuple(range(*part.get(axis, whole[axis]).indices(size)) for axis, size in enumerate(shape))
            for part in slices
        ]

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        here = plain_layout(home[self.source])
        inner = next(reversed(here.order(shape_of(self.graph, self.source))), 1)
        beside = all(cuts[inner].step == 1 and len(cuts[inner]) > 1 for cuts in self.cuts)
        common = here if beside else CHANNELS_LAST
        return Layouts({self.source: common}, dict.fromkeys(self.step.outputs, common))

    def alias(self, places: Mapping[str, Place], layouts: Mapping[str, Layout]) -> Mapping[str, Place]:
        """Where each part starts, and the steps between its elements."""
        return {
            name: _taken(places[self.source], cuts) for name, cuts in zip(self.step.outputs, self.cuts, strict=True)
        }


def _taken(whole: Place, cuts: tuple[range, ...]) -> Place:
    here = [cuts[axis] for axis in whole.axes]
    start = sum(cut.start * stride for cut, stride in zip(here, whole.strides, strict=True))
    return replace(
        whole,
        offset=whole.offset + start * whole.dtype.itemsize,
        shape=tuple(len(cut) for cut in here),
        strides=tuple(cut.step * stride for cut, stride in zip(here, whole.strides, strict=True)),
    )
