"""Data that are quantized by the range that they have at run time, and matrix products of them."""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.op import Epilogue, bind
from qbench.kernels.by_range import (
    PIECES,
    centred_kernel,
    dynamic_codes_kernel,
    parameters_kernel,
    range_kernel,
    scaled_kernel,
)
from qbench.kernels.levels import Level
from qbench.kernels.shape import choose_tile
from qbench.ops.integer.products import IntegerDense
from qbench.ops.onnx.dynamic import DynamicQuantize, MatmulInteger
from qbench.ops.qnn.dynamic import DynamicDense
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, row_major, shape_of
from qbench.runtime.lowerings.conv import Geometry, Tiled
from qbench.runtime.lowerings.floats.places import clamp, need_work
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import gapless, plain_layout
from qbench.runtime.lowerings.products import CentredWeights, Products, centred_weights
from qbench.runtime.step import Instruction

_LARGEST = 2**31 - 1


def _middle(integers: NDArray[Any]) -> int:
    """What 8-bit integers are stored less of, as int8."""
    return 128 if integers.dtype == np.uint8 else 0


def _products(data: str, weights: CentredWeights) -> Products:
    """Of codes, from which no zero point is taken yet."""
    bound = weights.absolute_sums * 2 * 255
    if bound.max(initial=0) > _LARGEST:
        raise Refused(f"its sums could reach {bound.max()}, beyond 32 bits")
    return Products(IntegerDense(), data, "uint8", 0, weights, np.zeros(len(bound), np.int64), bound, None)


@lowers(DynamicQuantize)
class DynamicQuantizeLowering(Lowering):
    """Range, integers, and the numbers that they go by, which are values too."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.data = step.head.inputs[0]
        need_work(graph, self.data)

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        here, (codes, *numbers) = plain_layout(home[self.data]), self.step.outputs
        return Layouts({self.data: here}, {codes: here, **dict.fromkeys(numbers, row_major(0))})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        codes, scale, zero_point = self.step.outputs
        source = gapless(site, self.data)
        target = gapless(site, codes, source.place.axes, output=True)
        ranges, x, count = site.workspace(8 * PIECES), source.place.reference, math.prod(source.place.shape)
        return [
            *source.copies,
            instruction(range_kernel(), f"{codes}: range", x=x, ranges=ranges, samples=1, count=count),
            instruction(
                dynamic_codes_kernel(), codes, x=x, out=target.place.reference, ranges=ranges, samples=1, count=count
            ),
            instruction(
                parameters_kernel(), scale, ranges=ranges, scale=site.places[scale].reference,
                zero_point=site.places[zero_point].reference,
            ),
            *target.copies,
        ]  # fmt: skip


@lowers(MatmulInteger)
class MatmulIntegerLowering(Tiled):
    """The tiles of integer layers on codes, of which the zero point is taken when the sums are there."""

    def read(self) -> Products:
        data, weight, zero, weight_zero = self.step.head.inputs
        if (
            weight not in self.graph.constants
            or weight_zero not in self.graph.constants
            or zero in self.graph.constants
        ):
            raise Refused("what is multiplied by is no constant, or its data have a known zero point")
        if len(shape_of(self.graph, weight)) != 2 or len(shape_of(self.graph, data)) < 2:
            raise Refused("it is no product of rows and one matrix")
        return _products(data, centred_weights(self.constant))

    @cached_property
    def constant(self) -> Constant:
        """The weights with a row for each output, and without their zero points: int8."""
        weight = self.graph.constants[self.step.head.inputs[1]].array.T
        return Constant(np.ascontiguousarray((weight.astype(np.int16) - _middle(weight)).astype(np.int8)))

    @cached_property
    def weight_zeros(self) -> NDArray[np.int32]:
        """Of each output."""
        zeros = self.graph.constants[self.step.head.inputs[3]].array
        made = zeros.astype(np.int32).ravel() - _middle(zeros)
        return np.ascontiguousarray(np.broadcast_to(made, len(self.constant.array)))

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        data, zero = self.products.data, self.step.head.inputs[2]
        rows = row_major(self.graph.types[data].rank)
        return Layouts({data: rows, zero: row_major(self.graph.types[zero].rank)}, {self.output: rows})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        source, target = gapless(site, self.products.data), gapless(site, self.output, output=True)
        rows, (units, depth) = math.prod(source.place.shape[:-1]), self.weights.shape
        tile = choose_tile(site.level, rows, units, depth, self.x)
        geometry = Geometry(rows, 1, depth, 1, depth, source.place.reference)
        zero_point = site.places[self.step.head.inputs[2]].reference
        return [
            *source.copies,
            self.tiled(site, geometry, tile, None, self.weights.reshape(1, units, 1, depth), target.place),
            instruction(
                centred_kernel(), f"{self.output}: centred", x=source.place.reference, y=target.place.reference,
                zero_point=zero_point, weight_sums=site.constant(self.products.weights.sums.astype(np.int32)),
                weight_zeros=site.constant(self.weight_zeros), rows=rows, depth=depth, channels=units,
                centred=not self.weight_zeros.any(),
            ),
            *target.copies,
        ]  # fmt: skip


@lowers(DynamicDense)
class DynamicDenseLowering(Tiled):
    """Range, integers, the tiles of integer layers, and the sums made real in the result's own memory."""

    absorbs = frozenset({Epilogue.BIAS, Epilogue.CLAMP})

    def read(self) -> Products:
        data, weight, scale = self.step.head.inputs
        if weight not in self.graph.constants or scale not in self.graph.constants:
            raise Refused("its weights are no constants")
        return _products(data, centred_weights(self.graph.constants[weight]))

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
