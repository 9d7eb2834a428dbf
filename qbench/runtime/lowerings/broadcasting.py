"""What lowerings of elementwise functions of several operands share, whatever the type of the elements."""

from collections.abc import Mapping

import numpy as np

from qbench.ir.graph import Graph
from qbench.ir.op import bind, is_op
from qbench.kernels.levels import Level
from qbench.ops.float.dense import BiasAdd
from qbench.ops.float.elementwise import Add
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, row_major
from qbench.runtime.lowerings.floats.places import borderless, operand_place, strides_within
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site
from qbench.runtime.lowerings.operands import common_layouts, need_walks, repeated, walks_of
from qbench.runtime.step import Place


class BroadcastLowering(Lowering):
    """Operands that broadcast to one result."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        need_walks(graph, step)

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return common_layouts(self.graph, self.step, home)

    def operands(self, site: Site) -> list[Place]:
        """Where they lie, as places that broadcast to the result."""
        return [operand_place(site, name) for name in self.step.head.inputs]

    @property
    def function(self) -> str:
        """What kernels call it: the op's name without its dialect; a bias is added like all else."""
        return Add.name if is_op(self.step.head, BiasAdd) else bind(self.step.head).short_name

    def walks(self, site: Site, names: str) -> list[dict[str, int]]:
        """By walk the fields of these names and y, and the extents; more names than operands mean the first."""
        y, places = site.places[self.step.outputs[0]], self.operands(site)
        by_name = dict(zip(names, [*places, *places[:1] * (len(names) - len(places))], strict=True))
        steps = {name: strides_within(place, y.natural_shape, y.axes) for name, place in by_name.items()}
        memory = {name: (place.reference, place.dtype.itemsize) for name, place in {**by_name, "y": y}.items()}
        for name, value in zip(names, self.step.head.inputs, strict=False):
            if value in self.graph.constants:
                array = np.ascontiguousarray(self.graph.constants[value].array)
                array, steps[name] = repeated(array, steps[name], y)
                memory[name] = site.constant(array), array.itemsize
        return walks_of(y.shape, memory, **steps, y=y.strides)


class PerChannelMixin(BroadcastLowering):
    """The second operand is a vector along the channels of the first."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        if step.head.inputs[0] in graph.constants:
            raise Refused("its data is a constant")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        data, *others = self.step.inputs(self.graph)
        common = borderless(home[data])
        return Layouts({data: common, **dict.fromkeys(others, row_major(1))}, {self.step.outputs[0]: common})

    def operands(self, site: Site) -> list[Place]:
        data, vector = super().operands(site)
        rank = len(data.shape)
        axis = bind(self.step.head).channel_axis_of("data", rank)
        assert axis is not None
        order = (*(i for i in range(rank) if i != axis), axis)
        shape, strides = (1,) * (rank - 1) + vector.shape, (0,) * (rank - 1) + vector.strides
        return [data, Place(vector.buffer, vector.offset, vector.dtype, shape, strides, order)]
