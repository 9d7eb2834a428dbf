"""Depthwise convolutions of floats."""

from collections.abc import Sequence

from qbench.ir.graph import Graph
from qbench.ir.op import Epilogue
from qbench.kernels.floats.depthwise import float_depthwise_kernel, pack_depthwise, pad_channels
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
        packed = site.packed(
            self.graph.constants[self.weight_name],
            f"float depthwise {number} of {self.windows}",
            lambda: pack_depthwise(weights[:, 0]),
        )
        low, high = clamp(self.step)
        return instruction(
            float_depthwise_kernel(site.level),
            self.output,
            x=x.reference,
            weights=site.constant(packed),
            bias=site.constant(pad_channels(bias)),
            out=y.reference,
            images=x.shape[0],
            height=x.shape[1],
            width=x.shape[2],
            channels=x.shape[3],
            out_height=y.shape[1],
            out_width=y.shape[2],
            **dict(zip(("x_image", "x_row", "x_pitch"), x.strides, strict=False)),
            **dict(zip(("out_image", "out_row", "out_pitch"), y.strides, strict=False)),
            kh=weights.shape[2],
            kw=weights.shape[3],
            sh=op.strides[0],
            sw=op.strides[1],
            dh=op.dilation[0],
            dw=op.dilation[1],
            top=op.padding[0],
            left=op.padding[1],
            low=low,
            high=high,
        )
