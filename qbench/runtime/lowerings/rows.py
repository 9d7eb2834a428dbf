"""Functions of rows of narrow integers: along the last axis, or along an image's channels, which are last in TFLite."""

import math
from collections.abc import Mapping, Sequence

from qbench.ir.graph import Graph
from qbench.kernels.kernel import Kernel
from qbench.kernels.levels import Level
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST, Layout, row_major, shape_of
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction
from qbench.runtime.lowerings.operands import gapless
from qbench.runtime.step import Instruction


class RowsLowering(Lowering):
    """Rows lie one after the other, whichever axis they are along.

    Parameters
    ----------
    step, graph, level
        As for any lowering.
    axis
        Along which they are.
    """

    def __init__(self, step: Fused, graph: Graph, level: Level, axis: int) -> None:
        super().__init__(step, graph, level)
        self.data = step.head.inputs[0]
        self.shape = shape_of(graph, self.data)
        rank = len(self.shape)
        self.order = CHANNELS_LAST if rank == 4 and axis % rank == 1 else row_major(rank)
        if axis % rank != self.order.axes[-1]:
            raise Refused("it is not along the last axis or an image's channels")
        if math.prod(self.shape) == 0:
            raise Refused("its rows are empty")
        self.count = self.shape[self.order.axes[-1]]

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return Layouts({self.data: self.order}, {self.step.outputs[0]: self.order})

    def on_rows(self, site: Site, kernel: Kernel, **fields: int) -> Sequence[Instruction]:
        """A kernel of rows from `x` to `y`, and the copies that it needs."""
        axes, output = self.order.axes, self.step.outputs[0]
        source, target = gapless(site, self.data, axes), gapless(site, output, axes, output=True)
        made = instruction(
            kernel, output, x=source.place.reference, y=target.place.reference,
            rows=math.prod(self.shape) // self.count, count=self.count, **fields,
        )  # fmt: skip
        return [*source.copies, made, *target.copies]
