"""Functions of two elements: sums, products, biases, with broadcasting."""

from collections.abc import Mapping, Sequence

from qbench.ir.graph import Graph
from qbench.ir.op import Epilogue, bind, is_op
from qbench.kernels.floats.binary import OPERATORS, binary_kernel
from qbench.kernels.levels import Level
from qbench.kernels.walk import strided
from qbench.ops.float.activation import PRelu
from qbench.ops.float.dense import BiasAdd
from qbench.ops.float.elementwise import Add, Binary
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, row_major
from qbench.runtime.lowerings.floats.places import (
    borderless,
    clamp,
    float_type,
    operand_place,
    per_channel,
    strides_within,
)
from qbench.runtime.lowerings.floats.unary import need_walk
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import common_layouts
from qbench.runtime.step import Instruction, Place


@lowers(Binary, rank=5)
class BinaryLowering(Lowering):
    """One instruction for a function of two elements and the clamps behind it."""

    absorbs = frozenset({Epilogue.CLAMP})

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.dtype, self.output = float_type(graph, *step.head.inputs), step.outputs[0]
        need_walk(graph, self.output)
        self.operator = bind(step.head).short_name if not is_op(step.head, BiasAdd) else Add.name
        if self.operator not in OPERATORS:
            raise Refused(f"there is no kernel for {step.head.op}")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return common_layouts(self.graph, self.step, home)

    def operands(self, site: Site) -> tuple[Place, Place]:
        """Where the two lie."""
        left, right = (operand_place(site, name) for name in self.step.head.inputs)
        return left, right

    def instructions(self, site: Site) -> Sequence[Instruction]:
        y, (a, b) = site.places[self.output], self.operands(site)
        shape = [y.shape[y.axes.index(axis)] for axis in range(len(y.shape))]
        steps = {name: strides_within(place, shape, y.axes) for name, place in (("a", a), ("b", b))}
        low, high = clamp(self.step)
        return [
            instruction(
                binary_kernel(self.operator, self.dtype, site.level),
                self.output,
                a=a.reference,
                b=b.reference,
                y=y.reference,
                low=low,
                high=high,
                **strided(y.shape, **steps, y=y.strides),
            )
        ]


@lowers(BiasAdd, PRelu, rank=5)
class PerChannelLowering(BinaryLowering):
    """The second operand is a vector along one axis of the first."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        if step.head.inputs[0] in graph.constants:
            raise Refused("its data is a constant")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        data, *others = self.step.inputs(self.graph)
        common = borderless(home[data])
        return Layouts({data: common, **dict.fromkeys(others, row_major(1))}, {self.output: common})

    def operands(self, site: Site) -> tuple[Place, Place]:
        data, vector = super().operands(site)
        return data, per_channel(self.step, vector, len(data.shape))
