"""Sums that grow along an axis."""

from collections.abc import Mapping, Sequence

from qbench.ir.op import bind
from qbench.kernels.cumsum import KINDS, cumsum_kernel
from qbench.ops.float.indexing import CumSum
from qbench.runtime.layout import Layout
from qbench.runtime.lowerings.lines import LinesLowering, lines_of
from qbench.runtime.lowerings.lowering import Layouts, Site, instruction, lowers
from qbench.runtime.lowerings.operands import plain_layout, walks_of
from qbench.runtime.step import Instruction


@lowers(CumSum)
class CumSumLowering(LinesLowering):
    """One line after the other."""

    kinds = KINDS

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        here = plain_layout(home[self.data])
        return Layouts({self.data: here}, {self.step.outputs[0]: here})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        op, name = bind(self.step.head), self.step.outputs[0]
        assert isinstance(op, CumSum)
        places = {"x": site.places[self.data], "y": site.places[name]}
        lines = {key: lines_of(place, self.axis, places["x"].axes) for key, place in places.items()}
        memory = {key: (place.reference, place.dtype.itemsize) for key, place in lines.items()}
        along = {f"{key}_step": place.natural_strides[self.axis] for key, place in places.items()}
        along |= {"depth": places["x"].natural_shape[self.axis], "reverse": int(op.reverse)}
        kernel = cumsum_kernel(self.kind, op.exclusive)
        found = walks_of(lines["x"].shape, memory, **{key: place.strides for key, place in lines.items()})
        return [instruction(kernel, name, **walk, **along) for walk in found]
