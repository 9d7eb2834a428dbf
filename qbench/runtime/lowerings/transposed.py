"""Transposed convolutions, as ordinary ones that give the pixels of all phases as channels.

With strides of s, output pixel ``s * q + r`` sums the weights ``r, r + s, r + 2 * s, ...`` times the pixels ``q, q - 1,
q - 2, ...`` of the input: each phase r is a convolution with every s-th weight, backwards. All phases have the same
window, so one convolution makes them side by side in scratch memory, and copies put them between each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.op import OPS, Epilogue, bind
from qbench.ir.types import TensorType
from qbench.kernels.levels import Level
from qbench.kernels.move import copy_of
from qbench.ops.float.conv import Conv2d, Conv2dTranspose
from qbench.ops.integer.products import IntegerConv2d, IntegerConv2dTranspose
from qbench.ops.numeric.exact import centred
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST, Layout, shape_of
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowering_of, lowers
from qbench.runtime.step import Instruction, Place, row_major


class _Axis(NamedTuple):
    """How the phases sweep the rows, or the columns.

    Parameters
    ----------
    stride, taps
        Number of phases, and size of their window.
    first, pixels
        The first pixel q that is computed, and how many are.
    cut, size
        How much is cut off before the result, and its size.
    padding
        Of the phases' convolution, before and after.
    """

    stride: int
    taps: int
    first: int
    pixels: int
    cut: int
    size: int
    padding: tuple[int, int]

    @classmethod
    def of(cls, stride: int, reach: int, given: int, cut: int, size: int) -> _Axis:
        taps = -(-reach // stride)
        first = min(cut // stride, taps - 1)
        before = taps - 1 - first
        pixels = max((cut + size - 1) // stride + 1 - first, given + before - taps + 1)
        return cls(stride, taps, first, pixels, cut, size, (before, pixels + taps - 1 - given - before))

    def pieces(self, together: bool) -> Iterator[tuple[int, int, int, int, int]]:
        """First phase, phases, first computed pixel, pixels of each phase, and where the first of them goes."""
        if together and self.cut % self.stride == self.size % self.stride == 0:
            yield 0, self.stride, self.cut // self.stride - self.first, self.size // self.stride, 0
            return
        for phase in range(self.stride):
            pixel = -((phase - self.cut) // self.stride)
            target = self.stride * pixel + phase - self.cut
            if target < self.size:
                yield phase, 1, pixel - self.first, -((target - self.size) // self.stride), target


@lowers(Conv2dTranspose, IntegerConv2dTranspose)
class TransposedLowering(Lowering):
    """Constant weights; any window, strides, padding, dilation and groups that the convolution of the phases takes."""

    absorbs = frozenset({Epilogue.BIAS, Epilogue.REQUANTIZE, Epilogue.CLAMP})

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, Conv2dTranspose | IntegerConv2dTranspose)
        self.op, self.output = op, step.outputs[0]
        self.data, weight = step.head.inputs
        if weight not in graph.constants:
            raise Refused("its weights are no constants")
        given, made = shape_of(graph, self.data), shape_of(graph, self.output)
        if 0 in (*given, *made):
            raise Refused("it has nothing to compute")
        reach = [1 + (n - 1) * d for n, d in zip(shape_of(graph, weight)[2:], op.dilation, strict=True)]
        self.rows, self.columns = (
            _Axis.of(op.strides[i], reach[i], given[i + 2], op.padding[i], made[i + 2]) for i in (0, 1)
        )
        self.channels, self.phases = made[1], math.prod(op.strides)
        self.shape = given[0], self.phases * made[1], self.rows.pixels, self.columns.pixels
        self.convolution = lowering_of(*self._convolution(weight), level)

    def _convolution(self, weight: str) -> tuple[Fused, Graph]:
        """The step and its graph, with the phases as channels."""
        graph, op, head = self.graph, self.op, self.step.head
        integer = isinstance(op, IntegerConv2dTranspose)
        (top, bottom), (left, right) = self.rows.padding, self.columns.padding
        attrs = {"padding": (top, left, bottom, right), "groups": op.groups}
        attrs |= {"data_zero_point": op.data_zero_point, "accumulator": op.accumulator} if integer else {}
        kind = IntegerConv2d.name if integer else Conv2d.name
        conv = replace(head, op=kind, attrs=FrozenMap[str, Any](attrs))
        constants = dict(graph.constants) | {weight: Constant(self._weights(graph.constants[weight].array))}
        for node in self.step.nodes[1:]:
            constants |= {name: self._for_each_phase(node, graph.constants[name].array) for name in node.inputs[1:]}
        types = dict(graph.types) | {name: constant.type for name, constant in constants.items()}
        for node in self.step.nodes:
            types[node.output] = TensorType(self.shape, graph.types[node.output].dtype)
        nodes = (conv, *self.step.nodes[1:])
        phases = replace(graph, nodes=nodes, constants=FrozenMap(constants), types=FrozenMap(types))
        return Fused(nodes), phases

    def _weights(self, weights: NDArray[Any]) -> NDArray[Any]:
        """[phases * out, in / groups, rows, columns], the phases of a group side by side; integers less zero points."""
        op, (height, width) = self.op, (self.rows, self.columns)
        if isinstance(op, IntegerConv2dTranspose):
            weights = centred(weights, op.weight_zero_point, 1)
            largest = max(int(weights.max()), -1 - int(weights.min()))
            weights = weights.astype(np.min_scalar_type(-1 - largest))
        inner, out, kh, kw = weights.shape
        whole = np.zeros((inner, out, height.taps * height.stride, width.taps * width.stride), weights.dtype)
        dh, dw = op.dilation
        whole[:, :, : kh * dh : dh, : kw * dw : dw] = weights
        split = whole.reshape(op.groups, inner // op.groups, out, height.taps, height.stride, width.taps, width.stride)[
            :, :, :, ::-1, :, ::-1
        ]
        return split.transpose(0, 4, 6, 2, 1, 3, 5).reshape(-1, inner // op.groups, height.taps, width.taps)

    def _for_each_phase(self, node: Node, parameter: NDArray[Any]) -> Constant:
        """A parameter of the nodes behind, which has one number for all channels or one for each."""
        if parameter.size == 1 and OPS[node.op].epilogue is not Epilogue.BIAS:
            return Constant(parameter)
        if parameter.size != self.channels:
            raise Refused(f"a parameter of shape {parameter.shape} does not run along its channels")
        axis = parameter.shape.index(self.channels)
        shape = *parameter.shape[:axis], self.shape[1], *parameter.shape[axis + 1 :]
        groups = parameter.reshape(self.op.groups, 1, -1)
        return Constant(np.repeat(groups, self.phases, axis=1).reshape(shape))

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        return Layouts(self.convolution.layouts(home).inputs, {self.output: CHANNELS_LAST})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        out = site.places[self.output].ordered(CHANNELS_LAST.axes)
        shape = tuple(self.shape[axis] for axis in CHANNELS_LAST.axes)
        if out.shape == shape:
            return self._of_convolution(site, out)
        site.workspace(math.prod(shape) * out.dtype.itemsize)
        buffer = site.first_scratch + len(site.scratch) - 1
        phases = replace(out, buffer=buffer, offset=0, shape=shape, strides=row_major(shape))
        return [*self._of_convolution(site, phases), *self._copies(phases, out)]

    def _of_convolution(self, site: Site, out: Place) -> Sequence[Instruction]:
        places = dict(site.places) | {self.output: out}
        return self.convolution.instructions(replace(site, graph=self.convolution.graph, places=places))

    def _copies(self, phases: Place, out: Place) -> Iterator[Instruction]:
        """The phases, each at its distance from the others."""
        (_, *strides), groups = self.op.strides, self.op.groups
        item, (sn, sh, sw, _), (tn, th, tw, _) = out.dtype.itemsize, phases.strides, out.strides
        each = self.channels // groups  # channels of a group and phase
        for row, _, y, height, to_y in self.rows.pieces(together=False):
            for column, together, x, width, to_x in self.columns.pieces(together=True):
                start = y * sh + x * sw + (row * strides[0] + column) * each
                sizes = phases.shape[0], height, width, together, groups, each
                source = sn, sh, sw, each, self.phases * each, 1
                target = tn, self.op.strides[0] * th, self.op.strides[1] * tw, tw, each, 1
                at, to = phases.reference + start * item, out.reference + (to_y * th + to_x * tw) * item
                kernel, fields = copy_of(item, at, to, sizes, source, target)
                yield instruction(kernel, "phases", **fields)
