"""Parts picked by indices that are known when the program runs."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from qbench.ir.dtypes import numpy_dtype
from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.indexed import DEPTH, pick_kernel
from qbench.kernels.levels import Level
from qbench.ops.float.select import GatherNd, Take
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, row_major, shape_of
from qbench.runtime.lowerings.floats.places import need_work
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import as_stored, gapless
from qbench.runtime.step import Instruction


@lowers(Take, GatherNd, rank=7)
class PickLowering(Lowering):
    """One instruction; all lies in rows."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        (self.data, self.indices), self.output = step.head.inputs, step.outputs[0]
        need_work(graph, self.data, self.output)
        if self.indices in graph.constants:
            raise Refused("its indices are constants that point beyond the axis, or have several axes")
        op, data, indices = bind(step.head), shape_of(graph, self.data), shape_of(graph, self.indices)
        if isinstance(op, Take):
            self.first, self.depth, self.own = op.axis % len(data), 1, False
            count = math.prod(indices)
        else:
            assert isinstance(op, GatherNd)
            self.first, self.depth, self.own = op.batch_dims, indices[-1], True
            count = math.prod(indices[self.first : -1])
        if self.depth > DEPTH:
            raise Refused(f"its indices have more than {DEPTH} numbers")
        self.sizes, self.count = data[self.first : self.first + self.depth], count
        self.outer, self.inner = math.prod(data[: self.first]), math.prod(data[self.first + self.depth :])

    @property
    def pointers(self) -> Mapping[str, tuple[int, ...]]:
        return {self.indices: self.sizes}

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        reads, makes = (
            {name: row_major(self.graph.types[name].rank) for name in names}
            for names in (self.step.inputs(self.graph), self.step.outputs)
        )
        return Layouts(reads, makes)

    def instructions(self, site: Site) -> Sequence[Instruction]:
        constant, types = self.graph.constants.get(self.data), self.graph.types
        read = [] if constant is not None else [gapless(site, self.data)]
        x = site.constant(as_stored(constant.array)) if constant is not None else read[0].place.reference
        indices, target = gapless(site, self.indices, plain=True), gapless(site, self.output, output=True)
        steps = [self.inner * math.prod(self.sizes[k + 1 :]) for k in range(self.depth)]
        missing = [1] * (DEPTH - self.depth)
        kernel = pick_kernel(numpy_dtype(types[self.data].dtype).itemsize, np.dtype(types[self.indices].dtype).str[1:])
        made = instruction(
            kernel, self.output, x=x, indices=indices.place.reference, y=target.place.reference, outer=self.outer,
            count=self.count, x_outer=math.prod(self.sizes) * self.inner, depth=self.depth, inner=self.inner,
            i_outer=self.count * self.depth if self.own else 0, sizes=[*self.sizes, *missing], steps=[*steps, *missing],
        )  # fmt: skip
        copies = [copy for one in (*read, indices) for copy in one.copies]
        return [*copies, made, *target.copies]
