"""Pools and resizing of float images, and images read at places that are computed."""

from collections.abc import Mapping, Sequence

import numpy as np

from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.floats.grid_sample import grid_sample_kernel
from qbench.kernels.floats.pool import pool_kernel
from qbench.kernels.floats.resize import resize_kernel
from qbench.kernels.levels import Level
from qbench.ops.float.grid_sample import GridSample
from qbench.ops.float.image import Resize2d
from qbench.ops.float.pool import AvgPool2d, MaxPool2d, Pool2d
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST, Layout, row_major, shape_of
from qbench.runtime.lowerings.floats.places import constant_place, float_type, in_order, need_work
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import Gapless, gapless
from qbench.runtime.step import Instruction, Place


class _Image(Lowering):
    """From one image to another, both channels-last."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.data, self.output = step.head.inputs[0], step.outputs[0]
        self.dtype = float_type(graph, self.data)
        need_work(graph, self.data, self.output)

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return Layouts({self.data: CHANNELS_LAST}, {self.output: CHANNELS_LAST})

    def data_place(self, site: Site) -> Place:
        """Where the image lies, its channels last."""
        return in_order(site.places[self.data], CHANNELS_LAST.axes)

    def places(self, site: Site, made: str) -> dict[str, int]:
        """The fields that all kernels of images have; `made` is what theirs call the output."""
        x, y = self.data_place(site), in_order(site.places[self.output], CHANNELS_LAST.axes)
        fields = {"x": x.reference, made: y.reference, "images": x.shape[0], "channels": x.shape[3]}
        fields |= {"out_height": y.shape[1], "out_width": y.shape[2]}
        for name, place in (("x", x), (made, y)):
            fields |= {f"{name}_image": place.strides[0], f"{name}_row": place.strides[1]}
            fields |= {f"{name}_pitch": place.strides[2]}
        return fields


@lowers(MaxPool2d, AvgPool2d, rank=5)
class FloatPoolLowering(_Image):
    """Maxima and means of windows."""

    def instructions(self, site: Site) -> Sequence[Instruction]:
        op = bind(self.step.head)
        assert isinstance(op, Pool2d)
        average = isinstance(op, AvgPool2d)
        counted = op.padding if average and op.count_include_pad else (0, 0, 0, 0)
        x = in_order(site.places[self.data], CHANNELS_LAST.axes)
        return [
            instruction(
                pool_kernel("average" if average else "max", self.dtype, site.level),
                self.output,
                **self.places(site, "out"),
                height=x.shape[1],
                width=x.shape[2],
                kh=op.pool_size[0],
                kw=op.pool_size[1],
                sh=op.strides[0],
                sw=op.strides[1],
                dh=op.dilation[0],
                dw=op.dilation[1],
                top=op.padding[0],
                left=op.padding[1],
                before_rows=counted[0],
                before_columns=counted[1],
                after_rows=counted[2],
                after_columns=counted[3],
            )
        ]


@lowers(Resize2d, rank=5)
class FloatResizeLowering(_Image):
    """Weighted sums of neighbours."""

    def instructions(self, site: Site) -> Sequence[Instruction]:
        op = bind(self.step.head)
        assert isinstance(op, Resize2d)
        x = in_order(site.places[self.data], CHANNELS_LAST.axes)
        fields: dict[str, int] = {"height": x.shape[1], "width": x.shape[2]}
        for axis, name in enumerate(("row", "column")):
            index, weight = op.neighbours(axis, x.shape[axis + 1])
            fields[f"{name}_index"] = site.constant(np.ascontiguousarray(index, np.int64))
            fields[f"{name}_weight"] = site.constant(np.ascontiguousarray(weight, np.float32))
            fields[f"{name}_taps"] = index.shape[1]
        return [instruction(resize_kernel(self.dtype, site.level), self.output, **self.places(site, "y"), **fields)]


@lowers(GridSample)
class GridSampleLowering(_Image):
    """The image has its channels last, the grid its pairs."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.grid = step.head.inputs[1]
        if self.dtype != "float32":
            raise Refused("only float32 has a kernel")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        wanted = {self.data: CHANNELS_LAST, self.grid: row_major(4)}
        inputs = {name: layout for name, layout in wanted.items() if name not in self.graph.constants}
        return Layouts(inputs, {self.output: CHANNELS_LAST})

    def data_place(self, site: Site) -> Place:
        constant = self.data in self.graph.constants
        return constant_place(site, self.data, CHANNELS_LAST.axes) if constant else super().data_place(site)

    def instructions(self, site: Site) -> Sequence[Instruction]:
        op, (height, width) = bind(self.step.head), shape_of(self.graph, self.data)[2:]
        assert isinstance(op, GridSample)
        constant = self.grid in self.graph.constants
        grid = Gapless(constant_place(site, self.grid), ()) if constant else gapless(site, self.grid, (0, 1, 2, 3))
        kernel = grid_sample_kernel(op.method, op.padding, op.align_corners)
        sizes = {"height": height, "width": width, "grid": grid.place.reference}
        return [*grid.copies, instruction(kernel, self.output, **self.places(site, "y"), **sizes)]
