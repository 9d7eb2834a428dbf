"""What lowerings of elementwise functions of several operands share, whatever the type of the elements."""

from collections.abc import Mapping
from typing import NamedTuple

from qbench.ir.graph import Graph
from qbench.ir.op import bind, is_op
from qbench.kernels.levels import Level
from qbench.ops.float.dense import BiasAdd
from qbench.ops.float.elementwise import Add
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, row_major
from qbench.runtime.lowerings.floats.places import borderless, strides_within
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site
from qbench.runtime.lowerings.operands import as_stored, common_layouts, need_walks, repeated, rows_of_walk, walks_of
from qbench.runtime.step import Place, Rows


class _Read(NamedTuple):
    """Of an operand: the reference of its first element and the bytes of one, and strides along the result's memory."""

    memory: tuple[int, int]
    strides: tuple[int, ...]


class BroadcastLowering(Lowering):
    """Operands that broadcast to one result."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        need_walks(graph, step)

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return common_layouts(self.graph, self.step, home)

    def seen(self, index: int, place: Place) -> Place:
        """The place of an operand as one that broadcasts to the result."""
        return place

    @property
    def function(self) -> str:
        """What kernels call it: the op's name without its dialect; a bias is added like all else."""
        return Add.name if is_op(self.step.head, BiasAdd) else bind(self.step.head).short_name

    def walks(self, site: Site, names: str) -> list[dict[str, int]]:
        """By walk the fields of these names and y, and the extents; more names than operands mean the first."""
        memory, strides = self._operands(site, names)
        return walks_of(site.places[self.step.outputs[0]].shape, memory, **strides)

    def rows(self, site: Site, names: str) -> Rows | None:
        """How the one walk does a few rows alone, of the operands that are as large as the result."""
        memory, strides = self._operands(site, names)
        read = [name for name, value in zip(names, self.step.head.inputs, strict=True) if value in self.by_rows]
        sizes = {name: at[1] for name, at in memory.items()}
        return rows_of_walk(site.places[self.step.outputs[0]].shape, sizes, read, "y", **strides)

    def _operands(self, site: Site, names: str) -> tuple[dict[str, tuple[int, int]], dict[str, tuple[int, ...]]]:
        """Memory and strides of the operands and of y."""
        y = site.places[self.step.outputs[0]]
        read = [self._read(site, index, y) for index in range(len(self.step.head.inputs))]
        by_name = dict(zip(names, read + read[:1] * (len(names) - len(read)), strict=True))
        by_name["y"] = _Read((y.reference, y.dtype.itemsize), y.strides)
        return {name: one.memory for name, one in by_name.items()}, {n: one.strides for n, one in by_name.items()}

    def _read(self, site: Site, index: int, result: Place) -> _Read:
        name = self.step.head.inputs[index]
        constant = self.graph.constants.get(name)
        if constant is None:
            place = self.seen(index, site.places[name])
            strides = strides_within(place, result.natural_shape, result.axes)
            return _Read((place.reference, place.dtype.itemsize), strides)
        array = as_stored(constant.array)
        place = self.seen(index, Place.dense(0, array.dtype, array.shape))
        array, strides = repeated(array, strides_within(place, result.natural_shape, result.axes), result)
        return _Read((site.constant(array), array.itemsize), strides)


class PerChannelMixin(BroadcastLowering):
    """The second operand is a vector along the channels of the first, or broadcasts."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        if step.head.inputs[0] in graph.constants:
            raise Refused("its data is a constant")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        data, *others = self.step.inputs(self.graph)
        if any(self.graph.types[name].rank > 1 for name in others):
            return super().layouts(home)
        common = borderless(home[data])
        return Layouts({data: common, **dict.fromkeys(others, row_major(1))}, {self.step.outputs[0]: common})

    def seen(self, index: int, place: Place) -> Place:
        if index == 0 or len(place.shape) > 1:
            return place
        data, _ = self.step.head.inputs
        rank = self.graph.types[data].rank
        axis = bind(self.step.head).channel_axis_of("data", rank)
        assert axis is not None
        order = (*(i for i in range(rank) if i != axis), axis)
        shape, strides = (1,) * (rank - 1) + place.shape, (0,) * (rank - 1) + place.strides
        return Place(place.buffer, place.offset, place.dtype, shape, strides, order)
