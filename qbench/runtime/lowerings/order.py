"""Where along an axis the greatest elements are, and the first few in order."""

import math
from collections.abc import Mapping, Sequence

from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.levels import Level
from qbench.kernels.order import KINDS, arg_kernel, topk_kernel
from qbench.ops.float.indexing import TopK
from qbench.ops.float.reduce import ArgMax, ArgMin
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout
from qbench.runtime.lowerings.floats.places import in_order
from qbench.runtime.lowerings.lines import LinesLowering, lines_of
from qbench.runtime.lowerings.lowering import Layouts, Site, instruction, lowers
from qbench.runtime.lowerings.operands import plain_layout, walks_of
from qbench.runtime.step import Instruction


@lowers(ArgMax, ArgMin)
class ArgLowering(LinesLowering):
    """One result for each line."""

    kinds = KINDS

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, ArgMax | ArgMin)
        self.keeps, self.largest = op.keepdims, isinstance(op, ArgMax)

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        here = plain_layout(home[self.data])
        left = tuple(axis - (axis > self.axis) for axis in here.axes if axis != self.axis)
        return Layouts({self.data: here}, {self.step.outputs[0]: here if self.keeps else Layout(left)})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        name, data = self.step.outputs[0], site.places[self.data]
        x, y = lines_of(data, self.axis, data.axes), site.places[name]
        y = lines_of(y, self.axis, data.axes) if self.keeps else in_order(y, x.axes)
        memory = {key: (place.reference, place.dtype.itemsize) for key, place in (("x", x), ("y", y))}
        along = {"depth": data.natural_shape[self.axis], "step": data.natural_strides[self.axis]}
        kernel = arg_kernel(data.letters, self.largest, site.level)
        found = walks_of(y.shape, memory, x=x.strides, y=y.strides)
        return [instruction(kernel, name, **walk, **along) for walk in found]


@lowers(TopK)
class TopKLowering(LinesLowering):
    """Values and indices of each line."""

    kinds = tuple(kind for kind in KINDS if kind != "i8")  # those leave no room for where they are

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        here = plain_layout(home[self.data])
        return Layouts({self.data: here}, dict.fromkeys(self.step.outputs, here))

    def instructions(self, site: Site) -> Sequence[Instruction]:
        op, name, axis = bind(self.step.head), self.step.outputs[0], self.axis
        assert isinstance(op, TopK)
        places = dict(zip("xvi", (site.places[value] for value in (self.data, *self.step.outputs)), strict=True))
        lines = {key: lines_of(place, axis, places["x"].axes) for key, place in places.items()}
        memory = {key: (place.reference, place.dtype.itemsize) for key, place in lines.items()}
        shape, k = lines["x"].shape, places["i"].natural_shape[axis]
        along = {f"{key}_step": place.natural_strides[axis] for key, place in places.items()}
        along |= {"depth": places["x"].natural_shape[axis], "k": k, "heap": site.workspace(8 * k * math.prod(shape))}
        kernel = topk_kernel(places["x"].letters, op.largest, site.level)
        found = walks_of(shape, memory, **{key: place.strides for key, place in lines.items()})
        return [instruction(kernel, name, **walk, **along) for walk in found]
