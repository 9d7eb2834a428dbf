"""Sums, means and extremes along axes, of floats and of integers."""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from qbench.ir.graph import Graph
from qbench.ir.op import Op, bind, is_op
from qbench.kernels.floats.reduce import Reduction as Function
from qbench.kernels.floats.reduce import reduce_kernel
from qbench.kernels.levels import Level
from qbench.kernels.reduce_integers import IntegerReduction, integer_reduction_kernel
from qbench.ops.float.pool import GlobalAvgPool2d, GlobalMaxPool2d
from qbench.ops.float.reduce import Max, Mean, Min, Prod, Reduction, Sum
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST, Layout, kept_first, row_major, shape_of
from qbench.runtime.lowerings.floats.places import float_type, need_work, result, widened
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import gapless, plain_layout
from qbench.runtime.lowerings.rescaling import ELEMENTS
from qbench.runtime.step import Instruction, Place

_FUNCTIONS: dict[type[Op], Function] = {
    GlobalAvgPool2d: "mean", GlobalMaxPool2d: "max", Mean: "mean", Sum: "sum", Prod: "prod", Max: "max", Min: "min"
}  # fmt: skip

_FEW = 16
"""Elements side by side that one result is made of: of fewer, many results are made at once."""


class _Reduce(Lowering):
    """Axes that lie together in memory become one number; those around them are kept."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.data, self.output = step.head.inputs[0], step.outputs[0]
        if self.data in graph.constants:
            raise Refused("its data is a constant")
        need_work(graph, self.data)
        op, self.rank = bind(step.head), graph.types[self.data].rank
        self.keeps = op.keepdims if isinstance(op, Reduction) else True
        axes = op.axes if isinstance(op, Reduction) else (2, 3)
        self.axes = {axis % self.rank for axis in axes}
        layouts = [CHANNELS_LAST] if self.rank == 4 else []
        layouts += [row_major(self.rank), kept_first(self.rank, self.axes)]
        self.fitting = next(layout for layout in layouts if self._fits(layout))

    def _fits(self, layout: Layout) -> bool:
        shape = shape_of(self.graph, self.data)
        order = [axis for axis in layout.axes if shape[axis] != 1]
        runs = [reduced for reduced, _ in groupby(order, key=self.axes.__contains__)]
        kept = [axis for axis in order if axis not in self.axes]
        return runs.count(True) <= 1 and (self.keeps or kept == sorted(kept))

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        here = plain_layout(home[self.data])
        layout = here if self._fits(here) else self.fitting
        made = layout if self.keeps else row_major(self.graph.types[self.output].rank)
        return Layouts({self.data: layout}, {self.output: made})

    def sizes(self, x: Place) -> tuple[int, int, int]:
        """Elements outside of the axes that are reduced, of these, and inside."""
        where = [i for i, axis in enumerate(x.axes) if axis in self.axes and x.shape[i] != 1]
        first, last = (where[0], where[-1] + 1) if where else (len(x.shape), len(x.shape))
        return math.prod(x.shape[:first]), math.prod(x.shape[first:last]), math.prod(x.shape[last:])


@lowers(*_FUNCTIONS, rank=5)
class FloatReduceLowering(_Reduce):
    """Of floats, any reduction."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        self.dtype = float_type(graph, step.head.inputs[0])
        super().__init__(step, graph, level)

    def instructions(self, site: Site) -> Sequence[Instruction]:
        x, y, dtype = site.places[self.data], site.places[self.output], self.dtype
        before: list[Instruction] = []
        after: list[Instruction] = []
        if not (x.contiguous and y.contiguous):
            x, before = widened(site, x, gaps=False)
            y, after = result(site, y, gaps=False)
            dtype = "float32"
        outer, reduced, inner = self.sizes(x)
        step = 1  # from one result's first element to the next one's
        if inner == 1 and reduced < _FEW:
            outer, inner, step = 1, outer, reduced
        function = _FUNCTIONS[type(bind(self.step.head))]
        made = instruction(
            reduce_kernel(function, dtype, site.level),
            self.output,
            x=x.reference,
            y=y.reference,
            outer=outer,
            rows=1,
            columns=reduced,
            inner=inner,
            x_outer=reduced * inner,
            x_row=0,
            x_column=inner if step == 1 else 1,
            x_inner=step,
            y_outer=inner,
        )
        return [*before, made, *after]


_EXTREMES: dict[type[Op], IntegerReduction] = {Max: "max", Min: "min"}
_OF_INTEGERS: dict[type[Op], IntegerReduction] = {**_EXTREMES, Sum: "sum", Prod: "prod"}
_WHOLE = ("int32", "int64")


@lowers(*_OF_INTEGERS, rank=6)
class IntegerReduceLowering(_Reduce):
    """Of integers; extremes also as codes are stored, which have the order of the values."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        codes = ELEMENTS if is_op(step.head, *_EXTREMES) else ()
        if graph.types[self.data].dtype not in (*codes, *_WHOLE):
            raise Refused(f"there is no kernel for {graph.types[self.data].dtype}")

    def instructions(self, site: Site) -> Sequence[Instruction]:
        source = gapless(site, self.data)
        target = gapless(site, self.output, output=True)
        outer, depth, inner = self.sizes(source.place)
        kind: Any = source.place.letters
        made = instruction(
            integer_reduction_kernel(_OF_INTEGERS[type(bind(self.step.head))], kind), self.output,
            x=source.place.reference, y=target.place.reference, outer=outer, depth=depth, inner=inner,
        )  # fmt: skip
        return [*source.copies, made, *target.copies]
