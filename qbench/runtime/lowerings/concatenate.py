"""Concatenation: what was made in its place needs nothing more, the rest is copied there, constants at each run."""

from collections.abc import Mapping, Sequence

from qbench.ir.op import bind
from qbench.ops.float.select import Concatenate
from qbench.runtime.layout import Layout, shape_of
from qbench.runtime.lowerings.copy import copy_constant, copy_instructions
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Site, lowers
from qbench.runtime.lowerings.operands import joined_layouts
from qbench.runtime.step import Instruction


@lowers(Concatenate)
class ConcatenateLowering(Lowering):
    """Joins values along an axis."""

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
            if name in self.graph.constants:
                made.append(copy_constant(site, self.graph.constants[name].array, part))
            elif site.places[name] != part:
                made.extend(copy_instructions(site.places[name], part))
            start += shape[axis]
        return made
