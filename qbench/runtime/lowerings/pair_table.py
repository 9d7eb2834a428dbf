"""Any function of two 8-bit values that broadcast, by table."""

from collections.abc import Mapping, Sequence

from qbench.ir.graph import Graph
from qbench.kernels.levels import Level
from qbench.kernels.pair_table import ENTRIES, pair_table_kernel
from qbench.ops.integer.table import IntegerPairTable
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import as_stored, common_layouts, need_walks, operand, walks_of
from qbench.runtime.step import Instruction


@lowers(IntegerPairTable)
class PairTableLowering(Lowering):
    """One instruction, or a few where there are many axes."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.output, self.table = step.outputs[0], step.head.inputs[2]
        need_walks(graph, step)
        if self.table not in graph.constants or graph.types[self.table].shape != (ENTRIES, ENTRIES):
            raise Refused("its table is no constant of two 8-bit integers")
        if graph.types[self.output].dtype in ("int4", "uint4"):
            raise Refused("its result has 4 bits")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return common_layouts(self.graph, self.step, home)

    def instructions(self, site: Site) -> Sequence[Instruction]:
        out, names = site.places[self.output], self.step.head.inputs[:2]
        a, b = (operand(site, name, out) for name in names)
        kernel, table = (
            pair_table_kernel(out.dtype.itemsize),
            site.constant(as_stored(self.graph.constants[self.table].array)),
        )
        memory = {"a": (a.reference, 1), "b": (b.reference, 1), "y": (out.reference, out.dtype.itemsize)}
        walks = walks_of(out.shape, memory, a=a.strides, b=b.strides, y=out.strides)
        return [instruction(kernel, self.output, table=table, **walk) for walk in walks]
