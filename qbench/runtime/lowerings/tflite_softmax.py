"""TFLite's softmax along the last axis of 8-bit values."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.levels import Level
from qbench.kernels.tflite_softmax import tflite_softmax_kernel
from qbench.ops.tflite.softmax import TfliteSoftmax
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, row_major, shape_of
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
        if op.axis % len(self.shape) != len(self.shape) - 1 or op.dtype not in ("int8", "uint8"):
            raise Refused("it is not along the last axis, or its result has 16 bits")
        if self.table not in graph.constants:
            raise Refused("its table is no constant")
        if math.prod(self.shape) == 0 or self.shape[-1] >= 2**12:
            raise Refused("its rows are empty, or sums of them could leave 32 bits")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        order = row_major(len(self.shape))
        return Layouts({self.data: order}, {self.step.outputs[0]: order})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        table = np.ascontiguousarray(self.graph.constants[self.table].array)
        source, target = gapless(site, self.data), gapless(site, self.step.outputs[0], output=True)
        made = instruction(
            tflite_softmax_kernel(), self.step.outputs[0], x=source.place.reference, y=target.place.reference,
            table=site.constant(table), rows=math.prod(self.shape[:-1]), count=self.shape[-1],
        )  # fmt: skip
        return [*source.copies, made, *target.copies]
