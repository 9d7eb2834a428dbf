"""Functions of one element, and casts between floats."""

from collections.abc import Mapping, Sequence

from qbench.ir.graph import Graph
from qbench.ir.op import Op, bind
from qbench.kernels.floats.convert import convert_kernel
from qbench.kernels.floats.functions import FUNCTIONS
from qbench.kernels.floats.unary import unary_kernel
from qbench.kernels.levels import Level
from qbench.ops.float.activation import Clip, Gelu, Relu, Unary
from qbench.ops.float.select import Cast
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout
from qbench.runtime.lowerings.floats.places import borderless, float_type, in_order
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import walks_of
from qbench.runtime.step import Instruction


class _Elementwise(Lowering):
    """One operand, and a result of its shape in the same order."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.data, self.output = step.head.inputs[0], step.outputs[0]
        if self.data in graph.constants:
            raise Refused("its data is a constant")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        same = borderless(home[self.data])
        return Layouts({self.data: same}, {self.output: same})

    def walks(self, site: Site) -> list[dict[str, int]]:
        """By walk the references and extents of the kernel's fields x and y."""
        y = site.places[self.output]
        x = in_order(site.places[self.data], y.axes)
        memory = {name: (place.reference, place.dtype.itemsize) for name, place in (("x", x), ("y", y))}
        return walks_of(y.shape, memory, x=x.strides, y=y.strides)


@lowers(Relu, Clip, Unary, rank=5)
class UnaryLowering(_Elementwise):
    """One instruction for a function of one element."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.dtype = float_type(graph, self.data)
        self.function, self.parameters = _function(bind(step.head))
        if self.function not in FUNCTIONS:
            raise Refused(f"there is no kernel for {step.head.op}")

    def instructions(self, site: Site) -> Sequence[Instruction]:
        kernel, (alpha, beta) = unary_kernel(self.function, self.dtype, site.level), self.parameters
        return [instruction(kernel, self.output, alpha=alpha, beta=beta, **walk) for walk in self.walks(site)]


def _function(op: Op) -> tuple[str, tuple[float, float]]:
    """The kernel's function and its parameters."""
    if op.bounds:
        return "clamp", op.bounds
    if isinstance(op, Gelu) and op.approximate == "tanh":
        return "gelu_tanh", (0.0, 0.0)
    given = vars(op)
    return op.short_name, (given.get("alpha", 0.0), given.get("beta", 0.0))


@lowers(Cast, rank=5)
class CastLowering(_Elementwise):
    """float32 to float16 and back."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.given, self.wanted = float_type(graph, self.data), float_type(graph, self.output)

    def instructions(self, site: Site) -> Sequence[Instruction]:
        kernel = convert_kernel(self.given, self.wanted, site.level)
        return [instruction(kernel, self.output, **walk) for walk in self.walks(site)]
