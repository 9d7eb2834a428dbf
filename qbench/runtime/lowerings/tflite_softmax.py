"""TFLite's softmax of 8-bit values along the last axis, or along channels of images, which are last in its files."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.levels import Level
from qbench.kernels.tflite_softmax import tflite_softmax_kernel
from qbench.ops.tflite.softmax import TfliteSoftmax
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST, Layout, row_major, shape_of
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import gapless
from qbench.runtime.step import Instruction


@lowers(TfliteSoftmax)
class TfliteSoftmaxLowering(Lowering):
    """From 8 bits to 8 bits."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, TfliteSoftmax)
        self.data, self.table = step.head.inputs
        self.shape = shape_of(graph, self.data)
        rank = len(self.shape)
        self.order = CHANNELS_LAST if rank == 4 and op.axis % rank == 1 else row_major(rank)
        if op.axis % rank != self.order.axes[-1] or op.dtype not in ("int8", "uint8"):
            raise Refused("it is not along the last axis or an image's channels, or its result has 16 bits")
        if self.table not in graph.constants:
            raise Refused("its table is no constant")
        self.count = self.shape[self.order.axes[-1]]
        if math.prod(self.shape) == 0 or self.count >= 2**12:
            raise Refused("its rows are empty, or sums of them could leave 32 bits")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return Layouts({self.data: self.order}, {self.step.outputs[0]: self.order})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        table = np.ascontiguousarray(self.graph.constants[self.table].array)
        axes = self.order.axes
        source, target = gapless(site, self.data, axes), gapless(site, self.step.outputs[0], axes, output=True)
        made = instruction(
            tflite_softmax_kernel(), self.step.outputs[0], x=source.place.reference, y=target.place.reference,
            table=site.constant(table), rows=math.prod(self.shape) // self.count, count=self.count,
        )  # fmt: skip
        return [*source.copies, made, *target.copies]
