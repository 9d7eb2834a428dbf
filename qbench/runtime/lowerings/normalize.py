"""Layer and RMS normalization of integers along the last axis."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.levels import Level
from qbench.kernels.normalize import normalize_kernel
from qbench.ops.integer.normalize import SHIFT, Normalize
from qbench.quant.inverse_root import NORMAL_BITS
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, row_major, shape_of
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import gapless
from qbench.runtime.lowerings.rescaling import flip, storage
from qbench.runtime.step import Instruction


@lowers(Normalize)
class NormalizeLowering(Lowering):
    """All axes before the first that is normalized make rows."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, Normalize)
        self.op, (self.data, *self.parameters) = op, step.head.inputs
        self.shape, dtype = shape_of(graph, self.data), graph.types[self.data].dtype
        self.zero_point, self.stored = op.zero_point + flip(dtype), storage(dtype)
        if any(name not in graph.constants for name in self.parameters):
            raise Refused("its gamma and beta are no constants")
        if math.prod(self.shape) == 0:
            raise Refused("its rows are empty")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        order = row_major(len(self.shape))
        return Layouts({self.data: order}, {self.step.outputs[0]: order})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        gamma, beta = (np.ascontiguousarray(self.graph.constants[name].array) for name in self.parameters)
        kernel = normalize_kernel(self.stored.name, self.op.centred, NORMAL_BITS, SHIFT)
        source, target = gapless(site, self.data), gapless(site, self.step.outputs[0], output=True)
        made = instruction(
            kernel, self.step.outputs[0], x=source.place.reference, y=target.place.reference,
            gamma=site.constant(gamma), beta=site.constant(beta), rows=math.prod(self.shape) // gamma.size,
            count=gamma.size, zero_point=self.zero_point, epsilon=self.op.epsilon,
        )  # fmt: skip
        return [*source.copies, made, *target.copies]
