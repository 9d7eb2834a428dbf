"""Normalization of floats: layer and RMS along the last axes, L2 along one, local response, instance of channels."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.floats.norm import (
    instance_norm_kernel,
    l2_norm_kernel,
    local_norm_kernel,
    norm_kernel,
    row_norm_kernel,
)
from qbench.kernels.floats.storage import FloatType
from qbench.kernels.levels import Level
from qbench.ops.float.norm import InstanceNorm, L2Normalize, LayerNorm, LocalResponseNorm, RMSNorm
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, row_major, shape_of
from qbench.runtime.lowerings.floats.places import float_type, in_order, need_work, result, rows_of, widened
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.step import Instruction


class _Norm(Lowering):
    """What is normalized lies in one layout; gamma and beta are constants."""

    layout: Layout

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.data, *self.parameters = step.head.inputs
        self.output, self.rank = step.outputs[0], graph.types[self.data].rank
        self.dtype: FloatType = float_type(graph, self.data)
        need_work(graph, self.data)
        if any(name not in graph.constants for name in self.parameters):
            raise Refused("its gamma and beta are no constants")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return Layouts({self.data: self.layout}, {self.output: self.layout})


@lowers(LayerNorm, RMSNorm, rank=5)
class FloatNormLowering(_Norm):
    """All axes before those that are normalized make rows."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, LayerNorm | RMSNorm)
        self.axes = self.rank - op.axis % self.rank
        self.epsilon, self.centred = op.epsilon, isinstance(op, LayerNorm)
        self.layout = Layout(tuple(range(self.rank)))

    def instructions(self, site: Site) -> Sequence[Instruction]:
        rows = rows_of(site, self.data, self.output, self.layout, self.dtype, self.axes)
        parameters = [site.constant(site.graph.constants[name].array.astype(np.float32)) for name in self.parameters]
        kernel = norm_kernel(self.centred, rows.dtype, site.level)
        more = {"gamma": parameters[0], "beta": parameters[-1], "epsilon": self.epsilon}
        return [*rows.before, instruction(kernel, self.output, **rows.fields, **more), *rows.after]


@lowers(L2Normalize, rank=5)
class L2NormalizeLowering(_Norm):
    """The axis comes last in memory; all others make rows."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, L2Normalize)
        axis, self.epsilon = op.axis % self.rank, float(np.dtype(self.dtype).type(op.epsilon))
        self.layout = Layout((*(i for i in range(self.rank) if i != axis), axis))

    def instructions(self, site: Site) -> Sequence[Instruction]:
        rows = rows_of(site, self.data, self.output, self.layout, self.dtype)
        kernel = l2_norm_kernel(rows.dtype, site.level)
        return [*rows.before, instruction(kernel, self.output, **rows.fields, epsilon=self.epsilon), *rows.after]


@lowers(LocalResponseNorm, rank=5)
class LocalNormLowering(_Norm):
    """Channels come last in memory; all other axes make rows."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.layout = Layout((0, *range(2, self.rank), 1))

    def instructions(self, site: Site) -> Sequence[Instruction]:
        op = bind(self.step.head)
        assert isinstance(op, LocalResponseNorm)
        rows = rows_of(site, self.data, self.output, self.layout, self.dtype)
        before, after = op.neighbours
        more = {"before": before, "after": after, "bias": op.bias, "share": op.alpha / op.size, "power": -op.beta}
        kernel = local_norm_kernel(rows.dtype, site.level)
        return [*rows.before, instruction(kernel, self.output, **rows.fields, **more), *rows.after]


@lowers(InstanceNorm, rank=5)
class InstanceNormLowering(_Norm):
    """Channels lie last in memory, or first where those of the data do, as groups made by a reshape."""

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        rows, last = row_major(self.rank), Layout((0, *range(2, self.rank), 1))
        self.layout = rows if home[self.data].same(rows, shape_of(self.graph, self.data)) else last
        return super().layouts(home)

    def instructions(self, site: Site) -> Sequence[Instruction]:
        x, y = (in_order(site.places[name], self.layout.axes) for name in (self.data, self.output))
        dtype, before, after = self.dtype, list[Instruction](), list[Instruction]()
        if not (x.contiguous and y.contiguous):
            dtype = "float32"
            x, before = widened(site, x, gaps=False)
            y, after = result(site, y, gaps=False)
        op = bind(self.step.head)
        assert isinstance(op, InstanceNorm)
        gamma, beta = (site.constant(site.graph.constants[name].array.astype(np.float32)) for name in self.parameters)
        by_axis = dict(zip(x.axes, x.shape, strict=True))
        samples, channels = by_axis.pop(0), by_axis.pop(1)
        sizes, pixels = {"channels": channels}, math.prod(by_axis.values())
        if self.layout.axes[1] == 1:
            kernel = row_norm_kernel(dtype, site.level)
            sizes |= {"rows": samples * channels, "columns": pixels}
        else:
            kernel = instance_norm_kernel(dtype, site.level)
            sizes |= {"samples": samples, "pixels": pixels}
        fields = {"x": x.reference, "y": y.reference, "gamma": gamma, "beta": beta, "epsilon": op.epsilon}
        return [*before, instruction(kernel, self.output, **fields, **sizes), *after]
