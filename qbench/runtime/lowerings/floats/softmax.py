"""Softmax of floats along any axis."""

from collections.abc import Mapping, Sequence

from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.floats.softmax import softmax_kernel
from qbench.kernels.levels import Level
from qbench.ops.float.softmax import LogSoftmax, Softmax
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout
from qbench.runtime.lowerings.floats.places import float_type, need_work, rows_of
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Site, instruction, lowers
from qbench.runtime.step import Instruction
from qbench.runtime.step import Rows as Cut


@lowers(Softmax, LogSoftmax, rank=5)
class FloatSoftmaxLowering(Lowering):
    """The axis comes last in memory; all others make rows."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.data, self.output = step.head.inputs[0], step.outputs[0]
        self.by_rows = (self.data,)
        float_type(graph, self.data)  # refuses others
        need_work(graph, self.data)
        op, rank = bind(step.head), graph.types[self.data].rank
        assert isinstance(op, Softmax | LogSoftmax)
        self.kernel = softmax_kernel(isinstance(op, LogSoftmax), isinstance(op, Softmax) and op.safe)
        axis = op.axis % rank
        self.layout = Layout((*(i for i in range(rank) if i != axis), axis))

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return Layouts({self.data: self.layout}, {self.output: self.layout})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        rows = rows_of(site, self.data, self.output, self.layout, "float32")
        fields = rows.fields
        pitches = {"x": 4 * fields["x_row"], "y": 4 * fields["y_row"]}
        cut = Cut(1, fields["rows"], {"x": ()}, "y", pitches, {"rows": 1})
        return [*rows.before, instruction(self.kernel, self.output, cut, **fields), *rows.after]
