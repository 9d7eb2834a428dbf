"""onnxruntime's softmax of 8-bit values, along any axis."""

import math
from collections.abc import Mapping, Sequence

from qbench.ir.dtypes import integer_range
from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.levels import Level
from qbench.kernels.onnx_softmax import onnx_softmax_kernel
from qbench.ops.onnx.softmax import OnnxSoftmax, powers
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, shape_of
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import gapless
from qbench.runtime.step import Instruction


@lowers(OnnxSoftmax)
class OnnxSoftmaxLowering(Lowering):
    """The axis comes last in memory; all others make rows."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, OnnxSoftmax)
        (self.data,) = step.head.inputs
        self.shape, self.op = shape_of(graph, self.data), op
        if math.prod(self.shape) == 0:
            raise Refused("it has nothing to compute")
        rank = len(self.shape)
        self.axis = op.axis % rank
        self.layout = Layout((*(i for i in range(rank) if i != self.axis), self.axis))

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return Layouts({self.data: self.layout}, {self.step.outputs[0]: self.layout})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        count = self.shape[self.axis]
        source, target = gapless(site, self.data), gapless(site, self.step.outputs[0], output=True)
        lowest, _ = integer_range(self.graph.types[self.data].dtype)
        made = instruction(
            onnx_softmax_kernel(), self.step.outputs[0], x=source.place.reference, y=target.place.reference,
            powers=site.constant(powers(self.op.scale, count)), rows=math.prod(self.shape) // count, count=count,
            steps=self.op.steps, zero_point=self.op.zero_point - lowest,
        )  # fmt: skip
        return [*source.copies, made, *target.copies]
