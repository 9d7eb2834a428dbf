"""Concatenation of 8-bit values that go through tables first: each writes into its part, constants at each run."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.levels import Level
from qbench.kernels.table import table_kernel
from qbench.ops.integer.table import ConcatenateTables, IntegerTable
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, shape_of
from qbench.runtime.lowerings.copy import copy_constant, copy_instructions
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import as_stored, gapless, joined_layouts
from qbench.runtime.step import Instruction, Place, row_major


@lowers(ConcatenateTables)
class ConcatenateTablesLowering(Lowering):
    """Joins values along an axis, each through a table of its own."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        half = len(step.head.inputs) // 2
        self.parts, self.tables = step.head.inputs[:half], step.head.inputs[half:]
        self.output = step.outputs[0]
        if any(name not in graph.constants for name in self.tables):
            raise Refused("its tables are no constants")
        dtypes = {graph.types[name].dtype for name in (*self.parts, self.output)}
        if not dtypes <= {"int8", "uint8"}:
            raise Refused(f"its types are {', '.join(sorted(dtypes))}")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return joined_layouts(home, self.step.inputs(self.graph), self.output)

    def instructions(self, site: Site) -> Sequence[Instruction]:
        op = bind(self.step.head)
        assert isinstance(op, ConcatenateTables)
        whole, start = site.places[self.output], 0
        axis = op.axis % len(whole.shape)
        made: list[Instruction] = []
        for name, table in zip(self.parts, self.tables, strict=True):
            shape = shape_of(self.graph, name)
            part, known = whole.part(axis, start, shape), self.graph.constants.get(name)
            if known is None:
                made += self._looked_up(site, name, table, part)
            else:
                found = IntegerTable().compute(known.array, self.graph.constants[table].array)
                made.append(copy_constant(site, found, part))
            start += shape[axis]
        return made

    def _looked_up(self, site: Site, name: str, table: str, part: Place) -> Sequence[Instruction]:
        source, count = gapless(site, name, part.axes), math.prod(part.shape)
        site.workspace(count)
        buffer = site.first_scratch + len(site.scratch) - 1
        scratch = Place(buffer, 0, part.dtype, part.shape, row_major(part.shape), part.axes, part.flipped)
        found = instruction(
            table_kernel(site.level, "u1", 1), self.output, x=source.place.reference, out=scratch.reference,
            table=site.constant(np.ascontiguousarray(as_stored(self.graph.constants[table].array))), outer=1,
            channels=1, inner=count, x_pitch=0, out_pitch=0,
        )  # fmt: skip
        return [*source.copies, found, *copy_instructions(scratch, part)]
