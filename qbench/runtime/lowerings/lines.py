"""Steps that walk along one axis of an activation."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from qbench.ir.dtypes import numpy_dtype
from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.levels import Level
from qbench.runtime.fuse import Fused
from qbench.runtime.lowerings.floats.places import in_order, need_work
from qbench.runtime.lowerings.lowering import Lowering, Refused
from qbench.runtime.step import Place


class LinesLowering(Lowering):
    """Lines along one axis of an activation, which lies as it does at home."""

    kinds: ClassVar[Collection[str]]
    """The types of elements that the kernel knows, in NumPy's letters."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.data = step.head.inputs[0]
        need_work(graph, self.data, step.outputs[0])
        dtype = graph.types[self.data].dtype
        self.kind = np.dtype(numpy_dtype(dtype)).str[1:]
        if self.data in graph.constants or self.kind not in self.kinds:
            raise Refused(f"there is no kernel for constants, or for {dtype}")
        self.rank = graph.types[self.data].rank
        self.axis: int = vars(bind(step.head))["axis"] % self.rank


def lines_of(place: Place, axis: int, order: Sequence[int]) -> Place:
    """Where the lines along one of the value's axes begin, the other axes in this order."""
    here = in_order(place, order)
    kept = [at for at, one in enumerate(order) if one != axis]
    axes = tuple(order[at] - (order[at] > axis) for at in kept)
    shape, strides = (tuple(of[at] for at in kept) for of in (here.shape, here.strides))
    return replace(here, shape=shape, strides=strides, axes=axes)
