"""Functions of elements that need not be floats: comparisons, choices, casts, sums of whole numbers."""

from collections.abc import Sequence

from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.levels import Level
from qbench.kernels.typed import CHOOSING, CODES, FUNCTIONS, KINDS, SAMPLED, typed_kernel
from qbench.ops.float.dense import BiasAdd
from qbench.ops.float.elementwise import Binary
from qbench.ops.float.indexing import Mod
from qbench.ops.float.logic import Comparison, IsNan, Logical, Where
from qbench.ops.float.select import Cast
from qbench.runtime.fuse import Fused
from qbench.runtime.lowerings.broadcasting import BroadcastLowering, PerChannelMixin
from qbench.runtime.lowerings.lowering import Refused, Site, instruction, lowers
from qbench.runtime.step import Instruction


@lowers(Comparison, Logical, IsNan, Where, Cast, Binary, Mod, rank=6)
class TypedLowering(BroadcastLowering):
    """One instruction for a function of up to three elements."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op, self.output = bind(step.head), step.outputs[0]
        made = KINDS | CODES if self.function in CHOOSING else KINDS
        known = KINDS | SAMPLED if isinstance(op, Cast) else made
        dtypes, dtype = [graph.types[name].dtype for name in step.head.inputs], graph.types[self.output].dtype
        if unknown := ({*dtypes} - known.keys()) | ({dtype} - made.keys()):
            raise Refused(f"there is no kernel for {', '.join(sorted(unknown))}")
        function = "to_bool" if isinstance(op, Cast) and op.dtype == "bool" else self.function
        function = f"unsigned_{function}" if isinstance(op, Cast) and dtypes == ["uint16"] else function
        if isinstance(op, Mod):
            function = "real_" * is_float(dtype) + ("fmod" if op.fmod else "mod")
        if function not in FUNCTIONS:
            raise Refused(f"there is no kernel for {step.head.op}")
        self.kernel = typed_kernel(function, tuple(known[dtype] for dtype in dtypes), made[dtype])

    def instructions(self, site: Site) -> Sequence[Instruction]:
        return [instruction(self.kernel, self.output, **walk) for walk in self.walks(site, "abc")]


@lowers(BiasAdd, rank=6)
class TypedBiasLowering(PerChannelMixin, TypedLowering):
    """A vector for the second operand."""
