"""TFLite's L2 normalization of 8 bits along the last axis, or along channels of images, which are last in its files."""

import math
from collections.abc import Mapping, Sequence

from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.levels import Level
from qbench.kernels.tflite_normalize import tflite_l2_normalize_kernel
from qbench.ops.tflite.normalize import TfliteL2Normalize
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST, Layout, row_major, shape_of
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import gapless
from qbench.runtime.lowerings.rescaling import flip
from qbench.runtime.step import Instruction


@lowers(TfliteL2Normalize)
class TfliteL2NormalizeLowering(Lowering):
    """Rows lie one after the other, whichever axis they are along."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op, self.data = bind(step.head), step.head.inputs[0]
        assert isinstance(op, TfliteL2Normalize)
        self.op, self.shape = op, shape_of(graph, self.data)
        rank = len(self.shape)
        self.order = CHANNELS_LAST if rank == 4 and op.axis % rank == 1 else row_major(rank)
        if op.axis % rank != self.order.axes[-1]:
            raise Refused("it is not along the last axis or an image's channels")
        if math.prod(self.shape) == 0:
            raise Refused("its rows are empty")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return Layouts({self.data: self.order}, {self.step.outputs[0]: self.order})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        axes, output, count = self.order.axes, self.step.outputs[0], self.shape[self.order.axes[-1]]
        source, target = gapless(site, self.data, axes), gapless(site, output, axes, output=True)
        made = instruction(
            tflite_l2_normalize_kernel(), output, x=source.place.reference, y=target.place.reference,
            rows=math.prod(self.shape) // count, count=count, left=self.op.left, more=self.op.more,
            zero_point=self.op.data_zero_point + flip(self.graph.types[self.data].dtype),
        )  # fmt: skip
        return [*source.copies, made, *target.copies]
