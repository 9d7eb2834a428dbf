"""Dense layers of floats."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from qbench.kernels.floats.conv import choose_chunk, choose_tile, float_conv_kernel, panel_lanes
from qbench.kernels.pack import pack_channels, pack_weights
from qbench.ops.float.dense import Dense
from qbench.runtime.layout import Layout, row_major
from qbench.runtime.lowerings.floats.conv import WeightedLowering
from qbench.runtime.lowerings.floats.places import clamp, in_order, pitch_of, result, widened
from qbench.runtime.lowerings.lowering import Layouts, Site, instruction, lowers
from qbench.runtime.step import Instruction


@lowers(Dense, rank=5)
class FloatDenseLowering(WeightedLowering):
    """A matrix product with as many pixels as there are rows."""

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        rows = row_major(self.graph.types[self.data].rank)
        return Layouts({self.data: rows}, {self.output: rows})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        axes = range(self.graph.types[self.data].rank)
        x, before = widened(site, in_order(site.places[self.data], axes))
        y, after = result(site, in_order(site.places[self.output], axes))
        (units, depth), pixels = self.weights.shape, math.prod(x.shape[:-1])
        tile, lanes = choose_tile(site.level, pixels, units, depth), panel_lanes(site.level)

        def pack() -> NDArray[np.float32]:
            return pack_weights(self.weights.reshape(1, units, 1, depth), tile, lanes, 1)

        packed = site.packed(self.graph.constants[self.weight_name], ("float", tile, lanes, 1, 1), pack)
        low, high = clamp(self.step)
        made = instruction(
            float_conv_kernel(site.level, tile),
            self.output,
            x=x.reference,
            zeros=0,
            table=0,
            weights=site.constant(packed),
            bias=site.constant(pack_channels(self.bias, 1, tile, lanes)),
            out=y.reference,
            pixels=pixels,
            taps=1,
            depth=depth,
            groups=1,
            channels=units,
            pitch=pitch_of(x) or 0,
            group_pitch=0,
            out_pitch=pitch_of(y) or 0,
            group_out=0,
            chunk=choose_chunk(tile, pixels, depth, packed.nbytes),
            low=low,
            high=high,
        )
        return [*before, made, *after]
