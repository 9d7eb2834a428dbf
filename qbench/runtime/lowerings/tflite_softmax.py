"""TFLite's softmax of 8 and 16 bits along the last axis, or along channels of images, which are last in its files."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from qbench.ir.dtypes import DType
from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.levels import Level
from qbench.kernels.tflite_softmax import tflite_softmax_int16_kernel, tflite_softmax_kernel
from qbench.ops.tflite.softmax import TfliteSoftmax, TfliteSoftmaxInt16, reciprocals
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST, Layout, row_major, shape_of
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import gapless
from qbench.runtime.step import Instruction


class _Kind(NamedTuple):
    """What is known of a softmax: its types, what the exponential of 0 is at least, and how long rows may be.

    Their sums then have a reciprocal, and fit into 32 bits.
    """

    dtypes: frozenset[DType]
    least: int
    longest: int


_KINDS = {
    TfliteSoftmax: _Kind(frozenset({"int8", "uint8"}), 2**12, 2**12 - 1),
    TfliteSoftmaxInt16: _Kind(frozenset({"int16"}), 2, 2**16 - 1),
}


@lowers(*_KINDS)
class TfliteSoftmaxLowering(Lowering):
    """Rows lie one after the other, whichever axis they are along."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op, (self.data, table) = bind(step.head), step.head.inputs
        assert isinstance(op, (TfliteSoftmax, TfliteSoftmaxInt16))
        kind, self.shape = _KINDS[type(op)], shape_of(graph, self.data)
        rank = len(self.shape)
        self.order = CHANNELS_LAST if rank == 4 and op.axis % rank == 1 else row_major(rank)
        if op.axis % rank != self.order.axes[-1] or op.dtype not in kind.dtypes:
            raise Refused("it is not along the last axis or an image's channels, or its result has other bits")
        if table not in graph.constants:
            raise Refused("its table is no constant")
        self.table = np.ascontiguousarray(graph.constants[table].array)
        if self.table.min() < 0 or self.table[0] < kind.least:
            raise Refused("its table is none of exponentials: their sum could be 0")
        self.count = self.shape[self.order.axes[-1]]
        if math.prod(self.shape) == 0 or self.count > kind.longest:
            raise Refused("its rows are empty, or sums of them could leave 32 bits")
        self.is_wide = isinstance(op, TfliteSoftmaxInt16)

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return Layouts({self.data: self.order}, {self.step.outputs[0]: self.order})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        axes, output = self.order.axes, self.step.outputs[0]
        source, target = gapless(site, self.data, axes), gapless(site, output, axes, output=True)
        fields = {"x": source.place.reference, "y": target.place.reference, "table": site.constant(self.table)}
        if self.is_wide:
            fields["reciprocals"] = site.constant(reciprocals().astype(np.int32))
        kernel = tflite_softmax_int16_kernel() if self.is_wide else tflite_softmax_kernel()
        rows = math.prod(self.shape) // self.count
        return [*source.copies, instruction(kernel, output, **fields, rows=rows, count=self.count), *target.copies]
