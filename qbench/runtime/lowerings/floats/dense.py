"""Dense layers of floats."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from qbench.ir.frozen import Constant
from qbench.kernels.floats.conv import choose_chunk, choose_tile, float_conv_kernel, panel_lanes
from qbench.kernels.pack import pack_channels, pack_weights
from qbench.ops.float.dense import Dense
from qbench.runtime.layout import Layout, row_major
from qbench.runtime.lowerings.floats.conv import WeightedLowering
from qbench.runtime.lowerings.floats.places import clamp, in_order, widened
from qbench.runtime.lowerings.lowering import Layouts, Site, instruction, lowers
from qbench.runtime.step import Instruction, Place


@lowers(Dense, rank=5)
class FloatDenseLowering(WeightedLowering):
    """A matrix product with as many pixels as there are rows."""

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        rows = row_major(self.graph.types[self.data].rank)
        inputs = [self.data] if self.added is None else [self.data, self.added]
        return Layouts(dict.fromkeys(inputs, rows), {self.output: rows})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        axes = range(self.graph.types[self.data].rank)
        x, before = widened(site, in_order(site.places[self.data], axes))
        y, added, more, after = self.result(site, axes)
        weight = self.graph.constants[self.weight_name]
        made = product(site, self.output, x, y, weight, self.bias, clamp(self.step), added)
        return [*before, *more, made, *after]


def product(
    site: Site,
    name: str,
    x: Place,
    y: Place,
    weight: Constant,
    bias: NDArray[np.float32],
    bounds: tuple[float, float] = (-math.inf, math.inf),
    added: int = 0,
) -> Instruction:
    """Rows times a constant weight.

    Parameters
    ----------
    site, name
        Where the instruction is made, and the value that it makes.
    x, y
        float32 rows of even pitch.
    weight
        ``[..., columns of x]``; what is ahead counts the columns of y.
    bias
        One number for each column of y.
    bounds
        Of the results.
    added
        Reference of what is added to them, as far apart as they are; 0 for nothing.
    """
    depth, pixels, units = x.shape[-1], math.prod(x.shape[:-1]), y.shape[-1]
    tile, lanes = choose_tile(site.level, pixels, units, depth), panel_lanes(site.level)

    def pack() -> NDArray[np.float32]:
        return pack_weights(weight.array.astype(np.float32, copy=False).reshape(1, units, 1, depth), tile, lanes, 1)

    packed = site.packed(weight, ("float", tile, lanes, 1, 1), pack)
    return instruction(
        float_conv_kernel(site.level, tile),
        name,
        x=x.reference,
        zeros=0,
        table=0,
        weights=site.constant(packed),
        bias=site.constant(pack_channels(bias, 1, tile, lanes)),
        added=added,
        out=y.reference,
        pixels=pixels,
        taps=1,
        depth=depth,
        groups=1,
        channels=units,
        pitch=x.pitch or 0,
        group_pitch=0,
        out_pitch=y.pitch or 0,
        group_out=0,
        chunk=choose_chunk(tile, pixels, depth, packed.nbytes),
        low=bounds[0],
        high=bounds[1],
    )
