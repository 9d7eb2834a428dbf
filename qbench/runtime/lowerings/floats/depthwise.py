"""Depthwise convolutions of floats."""

from collections.abc import Sequence

import numpy as np

from qbench.ir.graph import Graph
from qbench.ir.op import Epilogue
from qbench.kernels.floats.depthwise import float_depthwise_kernel, known_rows, pack_depthwise, pad_channels
from qbench.kernels.levels import Level
from qbench.ops.float.conv import Conv2d
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST
from qbench.runtime.lowerings.copy import channels_by_turns
from qbench.runtime.lowerings.floats.conv import FloatConvLowering
from qbench.runtime.lowerings.floats.places import clamp, in_order, result, widened
from qbench.runtime.lowerings.lowering import Refused, Site, instruction, lowers
from qbench.runtime.step import Instruction, Place


@lowers(Conv2d, rank=5)
class FloatDepthwiseLowering(FloatConvLowering):
    """As many groups as channels, each of one window or of a few."""

    absorbs = frozenset({Epilogue.BIAS, Epilogue.CLAMP})

    @property
    def joins_rows(self) -> bool:
        """Never."""
        return False

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        if not self.windows:
            raise Refused("it is not depthwise")

    def instructions(self, site: Site) -> Sequence[Instruction]:
        x, before = widened(site, in_order(site.places[self.data], CHANNELS_LAST.axes))
        y, after = result(site, in_order(site.places[self.output], CHANNELS_LAST.axes))
        parts, copies = channels_by_turns(site, y, self.windows)
        return [*before, *(self._part(site, number, x, part) for number, part in enumerate(parts)), *copies, *after]

    def _part(self, site: Site, number: int, x: Place, y: Place) -> Instruction:
        """One output of each channel."""
        op, (weights, bias) = self.op, (each[number :: self.windows] for each in (self.weights, self.bias))
        fields = {
            "images": x.shape[0],
            "height": x.shape[1],
            "width": x.shape[2],
            "channels": x.shape[3],
            "out_height": y.shape[1],
            "out_width": y.shape[2],
            **dict(zip(("x_image", "x_row", "x_pitch"), x.strides, strict=False)),
            **dict(zip(("out_image", "out_row", "out_pitch"), y.strides, strict=False)),
            **dict(zip(("kh", "kw"), weights.shape[2:], strict=True)),
            **dict(zip(("sh", "sw"), op.strides, strict=True)),
            **dict(zip(("dh", "dw"), op.dilation, strict=True)),
            **dict(zip(("top", "left"), op.padding, strict=False)),
        }
        rows = known_rows(site.level, fields)
        times = 1 if rows is None else rows.neighbours
        packed = site.packed(
            self.graph.constants[self.weight_name],
            ("float depthwise", number, self.windows, times, self.taps),
            lambda: pack_depthwise(np.tile(weights[:, 0], (times, 1, 1))),
        )
        low, high = clamp(self.step)
        return instruction(
            float_depthwise_kernel(site.level, rows),
            self.output,
            x=x.reference,
            weights=site.constant(packed),
            bias=site.constant(pad_channels(np.tile(bias, times))),
            out=y.reference,
            low=low,
            high=high,
            **fields,
        )
