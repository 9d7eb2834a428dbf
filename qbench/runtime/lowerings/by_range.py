"""Dense layers whose data are quantized by the range that they have at run time."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from qbench.ir.op import Epilogue, bind
from qbench.kernels.by_range import PIECES, dynamic_codes_kernel, range_kernel, scaled_kernel
from qbench.kernels.shape import choose_tile
from qbench.ops.integer.products import IntegerDense
from qbench.ops.qnn.dynamic import DynamicDense
from qbench.runtime.layout import Layout, row_major
from qbench.runtime.lowerings.conv import Geometry, Tiled
from qbench.runtime.lowerings.floats.places import clamp
from qbench.runtime.lowerings.lowering import Layouts, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import gapless
from qbench.runtime.lowerings.products import Products, centred_weights
from qbench.runtime.step import Instruction

_LARGEST = 2**31 - 1


@lowers(DynamicDense)
class DynamicDenseLowering(Tiled):
    """Range, integers, the tiles of integer layers, and the sums made real in the result's own memory."""

    absorbs = frozenset({Epilogue.BIAS, Epilogue.CLAMP})

    def read(self) -> Products:
        data, weight, scale = self.step.head.inputs
        if weight not in self.graph.constants or scale not in self.graph.constants:
            raise Refused("its weights are no constants")
        weights = centred_weights(self.graph.constants[weight])
        bound = weights.absolute_sums * 2 * 255
        if bound.max(initial=0) > _LARGEST:
            raise Refused(f"its sums could reach {bound.max()}, beyond 32 bits")
        zeros = np.zeros(len(bound), np.int64)
        return Products(IntegerDense(), data, "uint8", 0, weights, zeros, bound, None)

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        rows = row_major(self.graph.types[self.products.data].rank)
        return Layouts({self.products.data: rows}, {self.output: rows})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        op = bind(self.step.head)
        assert isinstance(op, DynamicDense) and isinstance(op.rows, int)
        source, target = gapless(site, self.products.data), gapless(site, self.output, output=True)
        shape = source.place.natural_shape
        samples = shape[0] // op.rows if op.rows else 1
        rows, (units, depth) = math.prod(shape[:-1]), self.weights.shape
        count = math.prod(shape) // samples
        ranges, codes = site.workspace(8 * PIECES * samples), site.workspace(math.prod(shape))
        x, tile = source.place.reference, choose_tile(site.level, rows, units, depth, self.x)
        bias, (low, high) = self.step.follower(Epilogue.BIAS), clamp(self.step)
        added = np.zeros(units, np.float32) if bias is None else self.graph.constants[bias.inputs[1]].array
        y = target.place.reference
        geometry = Geometry(rows, 1, depth, 1, depth, codes)
        return [
            *source.copies,
            instruction(range_kernel(), f"{self.output}: range", x=x, ranges=ranges, samples=samples, count=count),
            instruction(
                dynamic_codes_kernel(), f"{self.output}: quantized", x=x, out=codes, ranges=ranges, samples=samples,
                count=count,
            ),
            self.tiled(site, geometry, tile, None, self.weights.reshape(1, units, 1, depth), target.place),
            instruction(
                scaled_kernel(), f"{self.output}: scaled", y=y, ranges=ranges, samples=samples, rows=rows // samples,
                channels=units, weight_sums=site.constant(self.products.weights.sums.astype(np.int32)),
                weight_scales=site.constant(self.graph.constants[self.step.head.inputs[2]].array),
                bias=site.constant(np.ascontiguousarray(added)), low=low, high=high,
            ),
            *target.copies,
        ]  # fmt: skip
