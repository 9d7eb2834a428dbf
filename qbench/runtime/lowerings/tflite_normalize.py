"""TFLite's L2 normalization of 8 bits."""

from collections.abc import Sequence

from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.levels import Level
from qbench.kernels.tflite_normalize import tflite_l2_normalize_kernel
from qbench.ops.tflite.normalize import TfliteL2Normalize
from qbench.runtime.fuse import Fused
from qbench.runtime.lowerings.lowering import Site, lowers
from qbench.runtime.lowerings.rescaling import flip
from qbench.runtime.lowerings.rows import RowsLowering
from qbench.runtime.step import Instruction


@lowers(TfliteL2Normalize)
class TfliteL2NormalizeLowering(RowsLowering):
    """Codes in, codes out."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        op = bind(step.head)
        assert isinstance(op, TfliteL2Normalize)
        self.op = op
        super().__init__(step, graph, level, op.axis)

    def instructions(self, site: Site) -> Sequence[Instruction]:
        zero_point = self.op.data_zero_point + flip(self.graph.types[self.data].dtype)
        kernel = tflite_l2_normalize_kernel()
        return self.on_rows(site, kernel, left=self.op.left, more=self.op.more, zero_point=zero_point)
