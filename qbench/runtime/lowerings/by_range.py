"""Data that are quantized by the range that they have at run time, and matrix products of them."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
    fill_kernel,
    parameters_kernel,
    range_kernel,
    scaled_kernel,
)
from qbench.kernels.levels import Level
from qbench.ops.integer.products import IntegerConv2d, IntegerDense
from qbench.ops.onnx.dynamic import ConvInteger, DynamicQuantize, MatmulInteger
from qbench.ops.qnn.dynamic import DynamicDense
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST, Layout, row_major, shape_of
from qbench.runtime.lowerings.conv import ConvLowering, Geometry, Tiled
from qbench.runtime.lowerings.copy import copy_instructions
from qbench.runtime.lowerings.floats.places import clamp, need_work
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import gapless, plain_layout
from qbench.runtime.lowerings.products import CentredWeights, Products, centred_weights
from qbench.runtime.step import Instruction, Place

_LARGEST = 2**31 - 1


def _middle(integers: NDArray[Any]) -> int:
    """What 8-bit integers are stored less of, as int8."""
    return 128 if integers.dtype == np.uint8 else 0


def _products(data: str, weights: CentredWeights, op: IntegerDense | IntegerConv2d) -> Products:
    """Of codes, from which no zero point is taken yet."""
    bound = weights.absolute_sums * 2 * 255
    if bound.max(initial=0) > _LARGEST:
        raise Refused(f"its sums could reach {bound.max()}, beyond 32 bits")
    return Products(op, data, "uint8", 0, weights, np.zeros(len(bound), np.int64), bound, None)


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


class _Centred(Tiled):
    """The tiles of integer layers on codes, of which the zero point is taken when the sums are there.

    What makes real numbers of the results is done with them: a cast, a product with a scale, a bias, clamps.
    """

    absorbs = frozenset({Epilogue.CAST, Epilogue.SCALE, Epilogue.BIAS, Epilogue.CLAMP})

    def read(self) -> Products:
        data, weight, zero, weight_zero = self.step.head.inputs
        constants = self.graph.constants
        if weight not in constants or weight_zero not in constants or zero in constants:
            raise Refused("what is multiplied by is no constant, or its data have a known zero point")
        if self.step.nodes[1:] and {self.graph.types[node.output].dtype for node in self.step.nodes[1:]} != {"float32"}:
            raise Refused("its sums are made something else than float32")
        op, *_ = self.integer_op(), self.scales, self.bias  # which may refuse
        return _products(data, centred_weights(self.constant), op)

    @cached_property
    def scale(self) -> str | None:
        """What the results are multiplied by."""
        node, cast = (self.step.follower(what) for what in (Epilogue.SCALE, Epilogue.CAST))
        return next((name for name in node.inputs if name not in cast.outputs), None) if node and cast else None

    @cached_property
    def scales(self) -> int:
        """How many numbers that has: one for all channels, or one for each. Refused: something else."""
        shape = () if self.scale is None else shape_of(self.graph, self.scale)
        rank = self.graph.types[self.output].rank
        axis = bind(self.step.head).channel_axis_of("output", rank)
        others = [size for at, size in enumerate(shape, rank - len(shape)) if at != axis]
        if math.prod(others) != 1:
            raise Refused("its scale is neither one number nor one for each channel")
        return math.prod(shape)

    @cached_property
    def bias(self) -> NDArray[Any] | None:
        """Of each channel; Refused where it runs along something else."""
        node, rank = self.step.follower(Epilogue.BIAS), self.graph.types[self.output].rank
        if node is None:
            return None
        axis = bind(node).channel_axis_of("output", rank)
        if axis != bind(self.step.head).channel_axis_of("output", rank):
            raise Refused(f"its bias runs along axis {axis}")
        return np.ascontiguousarray(self.graph.constants[node.inputs[1]].array)

    @abstractmethod
    def integer_op(self) -> IntegerDense | IntegerConv2d:
        """What its sums of codes are; Refused where there are no tiles for it."""

    def rows(self, weight: NDArray[Any]) -> NDArray[Any]:
        """Weights with a row for each output."""
        return weight

    @cached_property
    def constant(self) -> Constant:
        """The weights without their zero points, int8; where they have some, a further output sums the data."""
        weight = self.rows(self.graph.constants[self.step.head.inputs[1]].array)
        whole = (weight.astype(np.int16) - _middle(weight)).astype(np.int8)
        alone = [np.ones_like(whole[:1])] if self.weight_zeros.any() else []
        return Constant(np.concatenate([whole, *alone]))

    @cached_property
    def weight_zeros(self) -> NDArray[np.int32]:
        """Of each output, or one for all."""
        zeros = self.graph.constants[self.step.head.inputs[3]].array
        return zeros.astype(np.int32).ravel() - _middle(zeros)

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        data, zero = self.products.data, self.step.head.inputs[2]
        rank = self.graph.types[data].rank
        layout = CHANNELS_LAST if isinstance(self.products.op, IntegerConv2d) else row_major(rank)
        numbers = [zero] if self.scale is None or self.scale in self.graph.constants else [zero, self.scale]
        plain = {name: row_major(self.graph.types[name].rank) for name in numbers}
        return Layouts({data: layout, **plain}, {self.output: layout})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        target = gapless(site, self.output, output=True)
        channels, width = target.place.shape[-1], len(self.weights)
        sums = replace(target.place, dtype=np.dtype(np.int32))
        if width > channels:
            shape = (*sums.shape[:-1], width)
            start = site.workspace(4 * math.prod(shape))
            sums = replace(Place.dense(start >> 48, sums.dtype, shape), axes=sums.axes)
        reals, scale_copies = self._reals(site, channels)
        weights, zeros = self.products.weights.sums[:channels], np.broadcast_to(self.weight_zeros, channels)
        return [
            *self.summed(site, sums),
            *scale_copies,
            instruction(
                centred_kernel(len(self.step.nodes) > 1), f"{self.output}: centred", sums=sums.reference,
                y=target.place.reference, zero_point=site.places[self.step.head.inputs[2]].reference,
                weight_sums=site.constant(weights.astype(np.int32)),
                weight_zeros=site.constant(np.ascontiguousarray(zeros)), rows=math.prod(sums.shape[:-1]),
                width=width, depth=math.prod(self.weights.shape[1:]), channels=channels, **reals,
            ),
            *target.copies,
        ]  # fmt: skip

    def _reals(self, site: Site, channels: int) -> tuple[dict[str, Any], Sequence[Instruction]]:
        """What the kernel takes to make real numbers, and how their scale gets where it reads it."""
        bias = np.zeros(channels, np.float32) if self.bias is None else self.bias
        low, high = clamp(self.step)
        fields = {"bias": site.constant(bias), "low": low, "high": high, "scales": self.scales}
        if self.scale is None or self.scale in self.graph.constants:
            scale = np.ones(1, np.float32) if self.scale is None else self.graph.constants[self.scale].array
            return {**fields, "scale": site.constant(np.ascontiguousarray(scale.ravel()))}, []
        source = gapless(site, self.scale)
        return {**fields, "scale": source.place.reference}, source.copies

    @abstractmethod
    def summed(self, site: Site, sums: Place) -> Sequence[Instruction]:
        """The sums of codes."""


@lowers(MatmulInteger)
class MatmulIntegerLowering(_Centred):
    """Rows times one matrix."""

    def integer_op(self) -> IntegerDense:
        data, weight, *_ = self.step.head.inputs
        if len(shape_of(self.graph, weight)) != 2 or len(shape_of(self.graph, data)) < 2:
            raise Refused("it is no product of rows and one matrix")
        return IntegerDense()

    def rows(self, weight: NDArray[Any]) -> NDArray[Any]:
        return weight.T

    def summed(self, site: Site, sums: Place) -> Sequence[Instruction]:
        source, (units, depth) = gapless(site, self.products.data), self.weights.shape
        rows = math.prod(sums.shape[:-1])
        geometry = Geometry(rows, 1, depth, 1, depth, source.place.reference)
        tile = self.tile(rows, units, depth)
        return [*source.copies, self.tiled(site, geometry, tile, None, self.weights.reshape(1, units, 1, depth), sums)]


@lowers(ConvInteger)
class ConvIntegerLowering(_Centred, ConvLowering):
    """Any window; where it is padded, of a copy with the zero point all around."""

    @cached_property
    def constant(self) -> Constant:
        """As others have it; of depthwise ones less their zero points, for 16 bits hold them there."""
        if not self._is_depthwise:
            return super().constant
        weight, zeros = (self.graph.constants[self.step.head.inputs[i]].array.astype(np.int16) for i in (1, 3))
        return Constant(weight - zeros.reshape(-1, 1, 1, 1))

    @cached_property
    def weight_zeros(self) -> NDArray[np.int32]:
        """As others have them; none of depthwise ones."""
        return np.zeros(1, np.int32) if self._is_depthwise else super().weight_zeros

    @property
    def _given(self) -> ConvInteger:
        op = bind(self.step.head)
        assert isinstance(op, ConvInteger)
        return op

    @property
    def _is_depthwise(self) -> bool:
        outputs, inner, *_ = shape_of(self.graph, self.step.head.inputs[1])
        return 1 < outputs == self._given.groups and inner == 1

    def integer_op(self) -> IntegerConv2d:
        op = self._given
        if op.groups > 1 and self.weight_zeros.any():
            raise Refused("its weights have zero points, and each group would need sums of its data")
        return IntegerConv2d(strides=op.strides, dilation=op.dilation, groups=op.groups)

    def summed(self, site: Site, sums: Place) -> Sequence[Instruction]:
        data, padding = self.products.data, self._given.padding
        x, before = site.places[data], list[Instruction]()
        if any(padding):
            x, before = self._padded(site, padding)
        moved = replace(site, places={**site.places, data: x, self.output: sums})
        return [*before, *ConvLowering.instructions(self, moved)]

    def _padded(self, site: Site, padding: tuple[int, int, int, int]) -> tuple[Place, list[Instruction]]:
        x, (top, left, bottom, right) = site.places[self.products.data], padding
        n, height, width, channels = x.shape
        shape = (n, height + top + bottom, width + left + right, channels)
        start = site.workspace(math.prod(shape))
        whole = replace(Place.dense(start >> 48, x.dtype, shape), axes=x.axes, flipped=x.flipped)
        inside = whole.offset + top * whole.strides[1] + left * whole.strides[2]
        zero_point = site.places[self.step.head.inputs[2]].reference
        filled = instruction(
            fill_kernel(), f"{self.output}: padding", out=start, count=whole.nbytes, zero_point=zero_point
        )
        return whole, [filled, *copy_instructions(x, replace(whole, offset=inside, shape=x.shape))]


@lowers(DynamicDense)
class DynamicDenseLowering(Tiled):
    """Range, integers, the tiles of integer layers, and the sums made real in the result's own memory."""

    absorbs = frozenset({Epilogue.BIAS, Epilogue.CLAMP})

    def read(self) -> Products:
        data, weight, scale = self.step.head.inputs
        if weight not in self.graph.constants or scale not in self.graph.constants:
            raise Refused("its weights are no constants")
        return _products(data, centred_weights(self.graph.constants[weight]), IntegerDense())

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
        x, tile = source.place.reference, self.tile(rows, units, depth)
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
