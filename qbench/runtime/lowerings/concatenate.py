"""Concatenation: what was made in its place needs nothing more, the rest is copied there."""

from collections.abc import Mapping, Sequence

from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.levels import Level
from qbench.ops.float.select import Concatenate
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, shape_of
from qbench.runtime.lowerings.copy import copy_instructions
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, lowers
from qbench.runtime.lowerings.operands import joined_layouts
from qbench.runtime.step import Instruction


@lowers(Concatenate)
class ConcatenateLowering(Lowering):
    """Joins values along an axis."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        if any(name in graph.constants for name in step.head.inputs):
            raise Refused("a constant is joined")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return joined_layouts(home, self.step.inputs(self.graph), self.step.outputs[0])

    def joined(self) -> int:
        op = bind(self.step.head)
        assert isinstance(op, Concatenate)
        return op.axis % len(shape_of(self.graph, self.step.outputs[0]))

    def instructions(self, site: Site) -> Sequence[Instruction]:
        whole, axis, start = site.places[self.step.outputs[0]], self.joined(), 0
        made: list[Instruction] = []
        for name in self.step.head.inputs:
            shape = shape_of(self.graph, name)
            part = whole.part(axis, start, shape)
            if site.places[name] != part:
                made.extend(copy_instructions(site.places[name], part))
            start += shape[axis]
        return made
