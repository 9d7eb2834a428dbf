"""Integer convolutions of each channel with a window of its own."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from qbench.ir.graph import Graph
from qbench.ir.op import Epilogue
from qbench.kernels.depthwise import MOST_TAPS, choose_sweep, depthwise_kernel, pack_depthwise
from qbench.kernels.epilogue import choose_epilogue
from qbench.kernels.isa import ISAS
from qbench.kernels.levels import Level
from qbench.ops.integer.products import IntegerConv2d
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST, Layout, shape_of
from qbench.runtime.lowerings.copy import channels_by_turns
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.products import products
from qbench.runtime.lowerings.rescaling import ELEMENTS
from qbench.runtime.lowerings.windows import windows_of_each
from qbench.runtime.step import Instruction, Place

_WIDEST = 64
"""Zero points that a vector reads beside the image."""


@lowers(IntegerConv2d, rank=0)
class DepthwiseLowering(Lowering):
    """As many groups as channels, each of one window or of a few, requantized to 8 bits."""

    absorbs = frozenset({Epilogue.BIAS, Epilogue.REQUANTIZE, Epilogue.CLAMP})

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        weight = shape_of(graph, step.head.inputs[1])
        if math.prod(weight[2:]) > MOST_TAPS:
            raise Refused(f"its window has more than {MOST_TAPS} taps")
        self.windows = windows_of_each(weight, shape_of(graph, step.head.inputs[0])[1])
        if not self.windows:
            raise Refused("it is not depthwise")
        self.products = self.once("products", lambda: products(step, graph)).on_image(step, graph)
        if ELEMENTS[self.products.dtype] == "i2":
            raise Refused("its data has 16 bits")
        if self.products.rescaling is None or self.products.rescaling.dtype not in ("int8", "uint8"):
            raise Refused("its result is not of 8 bits")
        if math.prod(shape_of(graph, step.outputs[0])) == 0:
            raise Refused("it has nothing to compute")

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return Layouts({self.products.data: CHANNELS_LAST}, {self.step.outputs[0]: CHANNELS_LAST})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        out = site.places[self.step.outputs[0]]
        parts, copies = channels_by_turns(site, out, self.windows)
        return [*(self._part(site, number, part) for number, part in enumerate(parts)), *copies]

    def _part(self, site: Site, number: int, out: Place) -> Instruction:
        """One output of each channel."""
        op, found, zero_point = self.products.op, self.products.rescaling, self.products.zero_point
        assert isinstance(op, IntegerConv2d)
        assert found is not None
        x = site.places[self.products.data]
        images, height, width, channels = x.shape
        own = slice(number, None, self.windows)
        weights, bound = self.products.weights.integers[own, 0], self.products.bound[own]
        biases, mantissas = np.ascontiguousarray(self.products.bias[own]), np.ascontiguousarray(found.mantissa[own])
        shifts, multipliers = np.ascontiguousarray(found.shift[own]), np.ascontiguousarray(found.multiplier[own])
        kernel, rounds_down = weights.shape[1:], site.level in ISAS and ISAS[site.level].rounds_down
        epilogue = choose_epilogue(found.rounding, bound, mantissas, shifts, multipliers, rounds_down)
        sweep = choose_sweep(site.level, kernel, op.strides, op.dilation, (out.shape[1], out.shape[2]))
        packed, blocks = self.once(
            (sweep, epilogue, number, self.products.taps),
            lambda: pack_depthwise(
                site.level, sweep, epilogue, weights, biases, mantissas, shifts, multipliers, found.zero_point
            ),
        )
        return instruction(
            depthwise_kernel(site.level, sweep, epilogue, self.products.weights.wide),
            self.step.outputs[0],
            x=x.reference,
            zeros=site.constant(np.full(_WIDEST, zero_point, np.uint8)),
            weights=site.constant(packed),
            blocks=site.constant(blocks),
            bias=site.constant(biases),
            mantissa=site.constant(mantissas),
            shift=site.constant(shifts),
            multiplier=site.constant(multipliers),
            out=out.reference,
            count=len(blocks),
            images=images,
            height=height,
            width=width,
            channels=channels,
            out_height=out.shape[1],
            out_width=out.shape[2],
            kernel_y=kernel[0],
            kernel_x=kernel[1],
            stride_y=op.strides[0],
            stride_x=op.strides[1],
            dilation_y=op.dilation[0],
            dilation_x=op.dilation[1],
            top=op.padding[0],
            left=op.padding[1],
            pitch=x.strides[2],
            row=x.strides[1],
            image=x.strides[0],
            out_pitch=out.strides[2],
            out_row=out.strides[1],
            out_image=out.strides[0],
            rounding=found.code,
            zero_point=found.zero_point,
            low=found.low,
            high=found.high,
        )
