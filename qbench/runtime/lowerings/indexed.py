"""Parts picked and written by indices, which as a rule are known when the program runs."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from qbench.ir.dtypes import numpy_dtype
from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.indexed import DEPTH, pick_kernel, put_kernel
from qbench.kernels.levels import Level
from qbench.kernels.typed import KINDS
from qbench.ops.float.indexing import ScatterNd
from qbench.ops.float.select import GatherNd, Take
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, row_major, shape_of
from qbench.runtime.lowerings.copy import copy_instructions
from qbench.runtime.lowerings.floats.places import constant_place, need_work, operand_place
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import Gapless, gapless
from qbench.runtime.step import Instruction


class _ByIndex(Lowering):
    """All lies in rows; each index has numbers that point into axes of one value that follow each other."""

    indices: str
    sizes: tuple[int, ...]
    """Of the axes that an index points into."""

    @property
    def pointers(self) -> Mapping[str, tuple[int, ...]]:
        return {} if self.indices in self.graph.constants else {self.indices: self.sizes}

    def need_good_indices(self) -> None:
        """Refuse what kernels cannot go by: too many numbers, or constants that point outside."""
        if len(self.sizes) > DEPTH:
            raise Refused(f"its indices have more than {DEPTH} numbers")
        constant = self.graph.constants.get(self.indices)
        if constant is not None:
            numbers = constant.array.reshape(-1, len(self.sizes))
            if ((numbers < -np.array(self.sizes)) | (numbers >= self.sizes)).any():
                raise Refused("its indices are constants that point beyond the axis")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        reads, makes = (
            {name: row_major(self.graph.types[name].rank) for name in names}
            for names in (self.step.inputs(self.graph), self.step.outputs)
        )
        return Layouts(reads, makes)

    def read(self, site: Site, name: str, plain: bool = False) -> Gapless:
        """Memory of an operand, in rows without gaps."""
        if name in self.graph.constants:
            return Gapless(constant_place(site, name), ())
        return gapless(site, name, plain=plain)

    def along(self, steps: Sequence[int]) -> dict[str, list[int]]:
        """The fields of kernels that say what the numbers of an index mean."""
        missing = [1] * (DEPTH - len(self.sizes))
        return {"sizes": [*self.sizes, *missing], "steps": [*steps, *missing]}


@lowers(Take, GatherNd, rank=7)
class PickLowering(_ByIndex):
    """One instruction."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        (self.data, self.indices), self.output = step.head.inputs, step.outputs[0]
        need_work(graph, self.data, self.output)
        op, data, indices = bind(step.head), shape_of(graph, self.data), shape_of(graph, self.indices)
        if isinstance(op, Take):
            self.first, self.depth, self.own = op.axis % len(data), 1, False
            count = math.prod(indices)
        else:
            assert isinstance(op, GatherNd)
            self.first, self.depth, self.own = op.batch_dims, indices[-1], True
            count = math.prod(indices[self.first : -1])
        self.sizes, self.count = data[self.first : self.first + self.depth], count
        self.outer, self.inner = math.prod(data[: self.first]), math.prod(data[self.first + self.depth :])
        self.need_good_indices()

    def instructions(self, site: Site) -> Sequence[Instruction]:
        types = self.graph.types
        data, indices = self.read(site, self.data), self.read(site, self.indices, plain=True)
        target = gapless(site, self.output, output=True)
        steps = [self.inner * math.prod(self.sizes[k + 1 :]) for k in range(self.depth)]
        kernel = pick_kernel(numpy_dtype(types[self.data].dtype).itemsize, np.dtype(types[self.indices].dtype).str[1:])
        made = instruction(
            kernel, self.output, x=data.place.reference, indices=indices.place.reference,
            y=target.place.reference, outer=self.outer, count=self.count, x_outer=math.prod(self.sizes) * self.inner,
            depth=self.depth, inner=self.inner, i_outer=self.count * self.depth if self.own else 0, **self.along(steps),
        )  # fmt: skip
        return [*data.copies, *indices.copies, made, *target.copies]


@lowers(ScatterNd)
class PutLowering(_ByIndex):
    """A copy of the data, then one instruction that writes into it."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        (self.data, self.indices, self.updates), self.output = step.head.inputs, step.outputs[0]
        need_work(graph, self.data, self.updates, self.indices)
        op, data = bind(step.head), shape_of(graph, self.data)
        assert isinstance(op, ScatterNd)
        self.kernel = put_kernel(
            written_kind(graph, self.data, op.reduction),
            np.dtype(graph.types[self.indices].dtype).str[1:],
            op.reduction,
        )
        self.depth = shape_of(graph, self.indices)[-1]
        self.sizes, self.inner = data[: self.depth], math.prod(data[self.depth :])
        self.need_good_indices()

    def instructions(self, site: Site) -> Sequence[Instruction]:
        updates, indices = self.read(site, self.updates), self.read(site, self.indices, plain=True)
        target = gapless(site, self.output, output=True)
        steps = [self.inner * math.prod(self.sizes[k + 1 :]) for k in range(self.depth)]
        made = instruction(
            self.kernel, self.output, x=updates.place.reference, indices=indices.place.reference,
            y=target.place.reference, count=math.prod(shape_of(self.graph, self.indices)[:-1]), depth=self.depth,
            inner=self.inner, **self.along(steps),
        )  # fmt: skip
        whole = copy_instructions(operand_place(site, self.data), target.place)
        return [*updates.copies, *indices.copies, *whole, made, *target.copies]


def written_kind(graph: Graph, data: str, reduction: str) -> str:
    """The type by which elements are written, in NumPy's letters: their bytes alone where nothing is computed."""
    dtype = graph.types[data].dtype
    if reduction == "none":
        return f"u{numpy_dtype(dtype).itemsize}"
    if dtype not in KINDS or dtype == "bool":
        raise Refused(f"there is no kernel that writes the {reduction} of {dtype}")
    return KINDS[dtype]
