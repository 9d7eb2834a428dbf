"""Functions of elements that need not be floats: comparisons, choices, casts, sums of whole numbers."""

from collections.abc import Mapping, Sequence

from qbench.ir.graph import Graph
from qbench.ir.op import Op, bind
from qbench.kernels.levels import Level
from qbench.kernels.typed import FUNCTIONS, KINDS, typed_kernel
from qbench.kernels.walk import strided
from qbench.ops.float.dense import BiasAdd
from qbench.ops.float.elementwise import Add, Binary
from qbench.ops.float.logic import Comparison, IsNan, Logical, Where
from qbench.ops.float.select import Cast
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, row_major
from qbench.runtime.lowerings.floats.places import operand_place, per_channel, strides_within
from qbench.runtime.lowerings.floats.unary import need_walk
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import common_layouts
from qbench.runtime.step import Instruction, Place


@lowers(Comparison, Logical, IsNan, Where, Cast, Binary, rank=6)
class TypedLowering(Lowering):
    """One instruction for a function of up to three elements."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op, self.output = bind(step.head), step.outputs[0]
        need_walk(graph, self.output)
        dtypes = [graph.types[name].dtype for name in (*step.head.inputs, self.output)]
        if unknown := {*dtypes} - KINDS.keys():
            raise Refused(f"there is no kernel for {', '.join(sorted(unknown))}")
        function = _function(op)
        if function not in FUNCTIONS:
            raise Refused(f"there is no kernel for {step.head.op}")
        *operands, result = (KINDS[dtype] for dtype in dtypes)
        self.kernel = typed_kernel(function, tuple(operands), result)

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return common_layouts(self.graph, self.step, home)

    def operands(self, site: Site) -> list[Place]:
        """Where they lie, as places that broadcast to the result."""
        return [operand_place(site, name) for name in self.step.head.inputs]

    def instructions(self, site: Site) -> Sequence[Instruction]:
        y, places = site.places[self.output], self.operands(site)
        a, b, c = [*places, *places[:1] * (3 - len(places))]
        steps = {name: strides_within(place, y.natural_shape, y.axes) for name, place in (("a", a), ("b", b), ("c", c))}
        return [
            instruction(
                self.kernel, self.output, a=a.reference, b=b.reference, c=c.reference, y=y.reference,
                **strided(y.shape, **steps, y=y.strides),
            )
        ]  # fmt: skip


@lowers(BiasAdd, rank=6)
class TypedBiasLowering(TypedLowering):
    """The second operand is a vector along one axis of the first."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        if step.head.inputs[0] in graph.constants:
            raise Refused("its data is a constant")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        data, *others = self.step.inputs(self.graph)
        common = Layout(home[data].axes)
        return Layouts({data: common, **dict.fromkeys(others, row_major(1))}, {self.output: common})

    def operands(self, site: Site) -> list[Place]:
        data, vector = super().operands(site)
        return [data, per_channel(self.step, vector, len(data.shape))]


def _function(op: Op) -> str:
    """The kernel's function."""
    if isinstance(op, Cast) and op.dtype == "bool":
        return "to_bool"
    return Add.name if isinstance(op, BiasAdd) else op.short_name
