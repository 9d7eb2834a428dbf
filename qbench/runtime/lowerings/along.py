"""Elements picked and written by indices along one axis, each line of the others by itself."""

from collections.abc import Mapping, Sequence

import numpy as np

from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.indexed import along_kernel
from qbench.kernels.levels import Level
from qbench.ops.float.indexing import ScatterElements, TakeAlongAxis
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, shape_of
from qbench.runtime.lowerings.copy import copy_instructions
from qbench.runtime.lowerings.floats.places import need_work, operand_place
from qbench.runtime.lowerings.indexed import written_kind
from qbench.runtime.lowerings.lines import lines_of
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import plain_layout, walks_of
from qbench.runtime.step import Instruction


@lowers(TakeAlongAxis, ScatterElements)
class AlongLowering(Lowering):
    """All lies alike, with any gaps; where elements are written, it is to a copy of the data."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op, self.output = bind(step.head), step.outputs[0]
        assert isinstance(op, TakeAlongAxis | ScatterElements)
        self.data, self.indices = step.head.inputs[:2]
        need_work(graph, self.data, self.indices)
        self.shape, indices = shape_of(graph, self.data), shape_of(graph, self.indices)
        self.axis = op.axis % len(self.shape)
        if any(many > size for i, (many, size) in enumerate(zip(indices, self.shape, strict=True)) if i != self.axis):
            raise Refused("it has more lines of indices than of data")
        constant = graph.constants.get(self.indices)
        size = self.shape[self.axis]
        if constant is not None and not -size <= constant.array.min() <= constant.array.max() < size:
            raise Refused("its indices are constants that point beyond the axis")
        function = op.reduction if isinstance(op, ScatterElements) else "take"
        kind = written_kind(graph, self.data, "none" if function == "take" else function)
        self.kernel = along_kernel(kind, np.dtype(graph.types[self.indices].dtype).str[1:], function)

    @property
    def pointers(self) -> Mapping[str, tuple[int, ...]]:
        return {} if self.indices in self.graph.constants else {self.indices: (self.shape[self.axis],)}

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        inputs = self.step.inputs(self.graph)
        here = plain_layout(home[self.data if self.data in inputs else inputs[0]])
        return Layouts(dict.fromkeys(inputs, here), {self.output: here})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        data, indices, *updates = (operand_place(site, name) for name in self.step.head.inputs)
        y = site.places[self.output]
        copied = copy_instructions(data, y) if updates else ()
        places = {"x": updates[0] if updates else data, "y": y, "i": indices}
        lines = {key: lines_of(place, self.axis, y.axes) for key, place in places.items()}
        memory = {key: (place.reference, place.dtype.itemsize) for key, place in lines.items()}
        along = {f"{key}_step": place.natural_strides[self.axis] for key, place in places.items()}
        along |= {"depth": indices.natural_shape[self.axis], "reach": self.shape[self.axis]}
        found = walks_of(lines["i"].shape, memory, **{key: place.strides for key, place in lines.items()})
        return [*copied, *(instruction(self.kernel, self.output, **walk, **along) for walk in found)]
