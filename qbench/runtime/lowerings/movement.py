"""Elements that are moved, repeated or filled in, whatever their type: slices, pads, blocks, nearest resize."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbench.ir.dtypes import numpy_dtype
from qbench.ir.graph import Graph
from qbench.ir.op import Op, bind
from qbench.ir.types import numbers
from qbench.kernels.levels import Level
from qbench.kernels.move import copy_of, gather_kernel
from qbench.ops.float.image import DepthToSpace, Resize2d, SpaceToDepth
from qbench.ops.float.select import BroadcastTo, Pad, Split, StridedSlice, Take, Tile
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, natural, shape_of
from qbench.runtime.lowerings.copy import fill_instructions
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import as_stored, plain_layout
from qbench.runtime.step import Instruction, Place

_RANK = 6
_LONG_RUN, _MOST_RUNS = 16, 4
"""Elements that are worth an instruction of their own, and of how many such runs."""


class _Moved(Lowering):
    """One activation, moved as it is; a constant, where it is repeated to sizes that a run decides."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.data, self.op = step.head.inputs[0], bind(step.head)
        self.shape = shape_of(graph, self.data)
        is_constant = self.data in graph.constants and not isinstance(self.op, BroadcastTo)
        if is_constant or any(name not in graph.constants for name in step.head.inputs[1:]):
            raise Refused("it moves a constant, or goes by another value")
        if max(len(shape_of(graph, name)) for name in step.outputs) > _RANK:
            raise Refused(f"it has more than {_RANK} axes")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        rank = len(self.shape)
        here = natural(rank) if self.data in self.graph.constants else plain_layout(home[self.data])
        ranks = {name: self.graph.types[name].rank for name in self.step.outputs}
        alike = {name: here if other == rank else natural(other) for name, other in ranks.items()}
        return Layouts({} if self.data in self.graph.constants else {self.data: here}, alike)


class _Strided(NamedTuple):
    """Elements that lie with any strides: where the first one is, counted in elements, and the steps between them."""

    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Run(NamedTuple):
    """Elements beside each other, and how many of padding lie before and after them."""

    before: int
    length: int
    after: int


def _whole(place: Place) -> _Strided:
    return _Strided(0, place.natural_shape, place.natural_strides)


def _copy(name: str, place: Place, source: _Strided, target: Place, into: _Strided) -> Instruction:
    """Copy between parts of two places; the source's strides may be negative."""
    item = place.dtype.itemsize
    lowest = source.start + sum((n - 1) * s for n, s in zip(source.shape, source.strides, strict=True) if s < 0)
    x, out = place.reference + lowest * item, target.reference + into.start * item
    kernel, fields = copy_of(item, x, out, source.shape, source.strides, into.strides)
    return instruction(kernel, name, **fields)


@lowers(Split, StridedSlice, BroadcastTo, DepthToSpace, SpaceToDepth, rank=5)
class CopyLowering(_Moved):
    """One copy between strided places for each output."""

    def instructions(self, site: Site) -> Sequence[Instruction]:
        x, made = self._place(site), list[Instruction]()
        outputs = [site.places[name] for name in self.step.outputs]
        for name, out, (source, target) in zip(self.step.outputs, outputs, self._pairs(x, outputs), strict=True):
            made.append(_copy(name, x, source, out, target))
            made += fill_instructions(out, site.layouts[name]) if any(site.layouts[name].border) else ()
        return made

    def _place(self, site: Site) -> Place:
        constant = self.graph.constants.get(self.data)
        if constant is None:
            return site.places[self.data]
        array = as_stored(constant.array)
        return replace(Place.dense(0, array.dtype, array.shape), offset=site.constant(array))

    def _pairs(self, x: Place, outputs: Sequence[Place]) -> Iterator[tuple[_Strided, _Strided]]:
        op, whole = self.op, _whole(x)
        for number, out in enumerate(outputs):
            if isinstance(op, DepthToSpace):
                yield _to_pixels(whole, op.block_size, op.mode == "DCR"), _blocks(_whole(out), op.block_size)
            elif isinstance(op, SpaceToDepth):
                channels = _to_pixels(_whole(out), op.block_size, True)
                yield _blocks(whole, op.block_size), channels
            elif isinstance(op, BroadcastTo):
                missing = len(out.shape) - len(whole.shape)
                steps = tuple(s if n != 1 else 0 for n, s in zip(whole.shape, whole.strides, strict=True))
                yield _Strided(0, out.natural_shape, (0,) * missing + steps), _whole(out)
            else:
                yield _cut(whole, _ranges(op, self.shape, number)), _whole(out)


def _ranges(op: Op, shape: tuple[int, ...], number: int) -> list[range]:
    """The positions along each axis that an output of a split or slice takes."""
    cuts = [slice(None)] * len(shape)
    if isinstance(op, Split):
        cuts[op.axis] = slice(*list(pairwise((0, *op.cuts, None)))[number])
    else:
        assert isinstance(op, StridedSlice)
        for axis, *ends in zip(op.axes, op.begin, op.end, op.strides, strict=True):
            cuts[axis] = slice(*ends)
    return [range(*cut.indices(size)) for cut, size in zip(cuts, shape, strict=True)]


def _cut(whole: _Strided, ranges: Sequence[range]) -> _Strided:
    start = sum(taken.start * stride for taken, stride in zip(ranges, whole.strides, strict=True))
    strides = tuple(taken.step * stride for taken, stride in zip(ranges, whole.strides, strict=True))
    return _Strided(start, tuple(map(len, ranges)), strides)


def _blocks(image: _Strided, block: int) -> _Strided:
    """An image [n, c, height, width] as [n, c, rows, block, columns, block]."""
    (n, c, height, width), (sn, sc, sh, sw) = image.shape, image.strides
    shape = (n, c, height // block, block, width // block, block)
    return _Strided(image.start, shape, (sn, sc, block * sh, sh, block * sw, sw))


def _to_pixels(image: _Strided, block: int, block_first: bool) -> _Strided:
    """An image whose channels hold blocks of pixels, as [n, c, rows, block, columns, block]."""
    (n, channels, rows, columns), (sn, sc, sh, sw) = image.shape, image.strides
    depth = channels // block**2
    row, column, channel = (block * depth, depth, 1) if block_first else (block, 1, block**2)
    return _Strided(
        image.start, (n, depth, rows, block, columns, block), (sn, channel * sc, sh, row * sc, sw, column * sc)
    )


@lowers(Pad, Tile, Resize2d, Take, rank=6)
class GatherLowering(_Moved):
    """Each element of the output from one of the input, found axis by axis; padding from a constant."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.indices = [self._indices(axis) for axis in range(len(self.shape))]

    def _indices(self, axis: int) -> NDArray[np.int64]:
        """Where along an axis of the input the output's elements come from; -1 where they are padding."""
        op, here = self.op, np.arange(self.shape[axis])
        if isinstance(op, Pad):
            width = numbers(op.pad_width[axis])
            return (
                np.pad(here, width, constant_values=-1) if op.mode == "constant" else np.pad(here, width, mode=op.mode)
            )
        if isinstance(op, Tile):
            return np.tile(here, numbers(op.reps[axis : axis + 1]))
        if isinstance(op, Take):
            indices = self.graph.constants[self.step.head.inputs[1]].array.astype(np.int64)
            if indices.ndim != 1:
                raise Refused("it takes by an index of several axes")
            if axis != op.axis % len(self.shape):
                return here
            if indices.size and not -here.size <= indices.min() <= indices.max() < here.size:
                raise Refused("its indices go beyond the axis")
            return here[indices]
        assert isinstance(op, Resize2d)
        if op.method != "nearest":
            raise Refused(f"{op.method} interpolation is not moving")
        return here if axis < 2 else op.neighbours(axis - 2, here.size)[0][:, 0]

    def instructions(self, site: Site) -> Sequence[Instruction]:
        name = self.step.outputs[0]
        x, out = site.places[self.data], site.places[name]
        strides = x.natural_strides
        tables = [
            np.where(self.indices[axis] < 0, -1, self.indices[axis] * strides[axis]).astype(np.int64)
            for axis in out.axes
        ]
        *outer, last = tables or [np.zeros(1, np.int64)]
        steps = list(out.strides) or [1]
        made: list[Instruction] = []
        for begin, table, run in _pieces(last) if steps[-1] == 1 else [(0, last, _Run(0, 1, 0))]:
            step = steps[-1] if table.size > 1 or not outer else steps[-2]  # of one element any will do
            made += self._walk(site, x, out, begin, ([*outer, table], [*steps[:-1], step]), run)
        bordered = any(site.layouts[name].border)
        return [*made, *(fill_instructions(out, site.layouts[name]) if bordered else ())]

    def _walk(
        self,
        site: Site,
        x: Place,
        out: Place,
        begin: int,
        axes: tuple[list[NDArray[np.int64]], list[int]],
        run: _Run,
    ) -> Iterator[Instruction]:
        """What makes runs from some element of the result on, as tables say, and steps in the result."""
        tables, strides = _fewer(*axes)
        missing = 3 - len(tables)
        if missing > 0:
            tables, strides = [np.zeros(1, np.int64)] * missing + tables, [0] * missing + strides
        for place in product(*map(enumerate, tables[:-3])):  # as a rule one: what is left cannot be walked at once
            here, start = tables[-3], begin
            for (index, offset), stride in zip(place, strides, strict=False):
                here, start = _joined(np.array([offset]), here), start + index * stride
            steps = strides[-3], strides[-2], strides[-1]
            yield self._gather(site, x, out, start, (here, *tables[-2:]), steps, run)

    def _gather(
        self,
        site: Site,
        x: Place,
        out: Place,
        start: int,
        tables: Sequence[NDArray[np.int64]],
        steps: tuple[int, int, int],
        run: _Run,
    ) -> Instruction:
        item = x.dtype.itemsize
        extent = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.strides, strict=True))
        return instruction(
            gather_kernel(item), self.step.outputs[0], x=x.reference, extent=extent, out=out.reference + start * item,
            sizes=(*map(len, tables), run.length), before=run.before, after=run.after, out_stride=steps,
            filler=self._filler(),
            **{f"table{i}": site.constant(table) for i, table in enumerate(tables)},
        )  # fmt: skip

    def _filler(self) -> int:
        """The constant of a pad, as its bits are stored."""
        if not isinstance(self.op, Pad):
            return 0
        dtype = numpy_dtype(self.graph.types[self.data].dtype)
        value = as_stored(np.array([self.op.pad_value]).astype(dtype))
        return int(value.view(f"u{value.itemsize}")[0])


def _pieces(table: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64], _Run]]:
    """Where the parts of an axis begin, and what makes each: long runs of neighbours, and elements one by one."""
    if (whole := _run_of(table)) is not None:
        yield 0, np.zeros(1, np.int64), whole
        return
    ends = [0, *(np.flatnonzero(np.diff(table) != 1) + 1).tolist(), table.size]
    runs = [(first, last) for first, last in pairwise(ends) if last - first >= _LONG_RUN and table[first] >= 0]
    done = 0
    for first, last in [*(runs if len(runs) <= _MOST_RUNS else ()), (table.size, table.size)]:
        if done < first:
            yield done, table[done:first], _Run(0, 1, 0)
        if first < last:
            yield first, table[first : first + 1], _Run(0, last - first, 0)
        done = last


def _run_of(table: NDArray[np.int64]) -> _Run | None:
    """Elements that lie beside each other, with padding on both sides; None where a table says anything else."""
    (inside,) = np.nonzero(table >= 0)
    if not np.array_equal(table[inside], np.arange(inside.size)) or not inside.size:
        return None
    first, last = int(inside[0]), int(inside[-1])
    return _Run(first, inside.size, table.size - 1 - last) if last - first == inside.size - 1 else None


def _fewer(
    tables: list[NDArray[np.int64]], strides: Sequence[int], wanted: int = 3
) -> tuple[list[NDArray[np.int64]], list[int]]:
    """As few tables as wanted, if the result's strides allow it: neighbours are joined, small ones first."""
    tables, steps = list(tables), list(strides)
    while len(tables) > wanted:
        pairs = [i for i in range(len(tables) - 1) if steps[i] == tables[i + 1].size * steps[i + 1]]
        if not pairs:
            break
        i = min(pairs, key=lambda i: tables[i].size * tables[i + 1].size)
        tables[i : i + 2] = [_joined(tables[i], tables[i + 1])]
        del steps[i]
    return tables, steps


def _joined(outer: NDArray[np.int64], inner: NDArray[np.int64]) -> NDArray[np.int64]:
    """The table of two axes as one; padding in either stays padding."""
    both = outer[:, np.newaxis] + inner
    return np.where((outer[:, np.newaxis] < 0) | (inner < 0), np.int64(-1), both).reshape(-1)
