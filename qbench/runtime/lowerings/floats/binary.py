"""Functions of two elements: sums, products, biases, with broadcasting."""

from collections.abc import Sequence

from qbench.ir.graph import Graph
from qbench.ir.op import Epilogue, is_op
from qbench.kernels.floats.binary import OPERATORS, binary_kernel
from qbench.kernels.levels import Level
from qbench.ops.float.activation import PRelu
from qbench.ops.float.dense import BiasAdd
from qbench.ops.float.elementwise import Binary, Power
from qbench.runtime.fuse import Fused
from qbench.runtime.lowerings.broadcasting import BroadcastLowering, PerChannelMixin
from qbench.runtime.lowerings.floats.places import (
    clamp,
    float_type,
)
from qbench.runtime.lowerings.lowering import Refused, Site, instruction, lowers
from qbench.runtime.step import Instruction

_POWERS = ((2.0, "square"), (3.0, "cube"))


@lowers(Binary, rank=5)
class BinaryLowering(BroadcastLowering):
    """One instruction for a function of two elements and the clamps behind it."""

    absorbs = frozenset({Epilogue.CLAMP})

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.dtype, self.output = float_type(graph, *step.head.inputs), step.outputs[0]
        if self.function not in OPERATORS:
            raise Refused(f"there is no kernel for {step.head.op}")
        data = [name for name in step.head.inputs if name not in graph.constants]
        self.by_rows = tuple(name for name in data if graph.types[name] == graph.types[self.output])

    @property
    def function(self) -> str:
        """A power by its exponent where multiplications do."""
        head = self.step.head
        exponent = self.graph.constants.get(head.inputs[1]) if is_op(head, Power) else None
        whole = (name for value, name in _POWERS if exponent is not None and (exponent.array == value).all())
        return next(whole, super().function)

    def instructions(self, site: Site) -> Sequence[Instruction]:
        kernel, (low, high) = binary_kernel(self.function, self.dtype, site.level), clamp(self.step)
        walks = self.walks(site, "ab")
        rows = self.rows(site, "ab") if len(walks) == 1 else None
        return [instruction(kernel, self.output, rows, low=low, high=high, **walk) for walk in walks]


@lowers(BiasAdd, PRelu, rank=5)
class PerChannelLowering(PerChannelMixin, BinaryLowering):
    """A vector for the second operand."""
