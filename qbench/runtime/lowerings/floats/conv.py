"""Convolutions of floats by tiles, with their bias and clamps."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from qbench.ir.graph import Graph
from qbench.ir.op import Epilogue, bind
from qbench.kernels.floats.conv import choose_chunk, choose_tile, float_conv_kernel, panel_lanes
from qbench.kernels.levels import Level
from qbench.kernels.pack import pack_channels, pack_weights
from qbench.ops.float.conv import Conv2d
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST, Layout, shape_of
from qbench.runtime.lowerings.floats.places import (
    clamp,
    fits,
    float_type,
    in_order,
    need_work,
    result,
    widened,
)
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.windows import input_offsets, taps_that_meet, windows_of_each
from qbench.runtime.step import Instruction, Place

_FEW = 4
"""With at most so many channels, a row of the window is read as one tap."""


class WeightedLowering(Lowering):
    """Products with constant weights, a constant bias along one axis, another value that is added, and clamps."""

    absorbs = frozenset({Epilogue.BIAS, Epilogue.ADD, Epilogue.CLAMP})

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.data, self.weight_name = step.head.inputs
        self.output = step.outputs[0]
        self.dtype = float_type(graph, *step.head.inputs)
        if self.weight_name not in graph.constants:
            raise Refused("its weights are no constants")
        if self.dtype == "float16" and len(step.nodes) > 1:
            raise Refused("float16 is rounded after every op")
        need_work(graph, self.data, self.weight_name, self.output)
        node = step.follower(Epilogue.BIAS)
        if node is not None:
            rank = graph.types[node.output].rank
            axis = bind(node).channel_axis_of("output", rank)
            if axis != bind(step.head).channel_axis_of("output", rank):
                raise Refused(f"its bias runs along axis {axis}")
        self.bias_name = None if node is None else node.inputs[1]
        node = step.follower(Epilogue.ADD)
        made = {name for member in step.nodes for name in member.outputs}
        self.added = None if node is None else next(name for name in node.inputs if name not in made)

    @property
    def weights(self) -> NDArray[np.float32]:
        """The weights of the op."""
        return self.graph.constants[self.weight_name].array.astype(np.float32, copy=False)

    @property
    def bias(self) -> NDArray[np.float32]:
        """One number per output channel."""
        if self.bias_name is None:
            return np.zeros(len(self.weights), np.float32)
        return self.graph.constants[self.bias_name].array.astype(np.float32, copy=False)

    def result(self, site: Site, axes: Sequence[int]) -> tuple[Place, int, list[Instruction], list[Instruction]]:
        """Where the results go, the reference of what is added to them (0: nothing), copies before and after."""
        place = in_order(site.places[self.output], axes)
        if self.added is None:
            y, after = result(site, place)
            return y, 0, [], after
        given = in_order(site.places[self.added], axes)
        gaps = fits(place) and fits(given) and place.pitch == given.pitch  # else both have none
        (y, after), (added, before) = result(site, place, gaps), widened(site, given, gaps)
        return y, added.reference, before, after


@lowers(Conv2d, rank=6)
class FloatConvLowering(WeightedLowering):
    """Any window, strides, padding, dilation and groups."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        window, *sizes = (shape_of(graph, name)[2:] for name in (self.weight_name, self.data, self.output))
        op = bind(self.step.head)
        assert isinstance(op, Conv2d)
        self.taps = taps_that_meet(op, window, *sizes)
        self.op = replace(op, padding=self.taps.padding)
        """Of what is left of the window."""
        self.windows = windows_of_each(self.weights.shape, shape_of(graph, self.data)[1])
        """Of each channel, where it is depthwise."""
        if self.added is not None and self.windows:
            raise Refused("its kernel adds nothing")

    @property
    def weights(self) -> NDArray[np.float32]:
        return self.taps.of(super().weights)

    @property
    def joins_rows(self) -> bool:
        """Whether a row of the window is one tap: its few channels lie side by side, padding included."""
        _, channels, _, width = self.weights.shape
        few = channels <= _FEW and width > 1 and self.dtype == "float32"
        return few and self.op.groups == 1 and self.op.dilation[1] == 1

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        data = Layout(CHANNELS_LAST.axes, self.op.padding) if self.joins_rows else CHANNELS_LAST
        added = {} if self.added is None else {self.added: CHANNELS_LAST}
        return Layouts({**added, self.data: data}, {self.output: CHANNELS_LAST})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        op, weights = self.op, self.weights
        given = in_order(site.places[self.data], CHANNELS_LAST.axes)
        joins_rows = self.joins_rows and given.strides[2] == weights.shape[1]  # not where channels are part of more
        x, before = (given, []) if self.joins_rows else widened(site, given)
        y, added, more, after = self.result(site, CHANNELS_LAST.axes)
        out, inner, height, width = weights.shape
        n, out_height, out_width, _ = y.shape
        taps, depth = (height, width * inner) if joins_rows else (height * width, inner)
        groups, channels, pixels = op.groups, out // op.groups, n * out_height * out_width
        tile, lanes = choose_tile(site.level, pixels, channels, x.strides[2]), panel_lanes(site.level)
        table = 0
        if (height, width, *op.strides, *op.padding) != (1, 1, 1, 1, 0, 0, 0, 0) or x.pitch is None:
            offsets = input_offsets(op, x, (out_height, out_width), (height, width), tile.rows, joins_rows)
            table = site.constant(offsets)

        def pack() -> NDArray[np.float32]:
            ordered = weights.transpose(0, 2, 3, 1).reshape(groups, channels, taps, depth)
            return pack_weights(ordered, tile, lanes, 1)

        packed = site.packed(
            self.graph.constants[self.weight_name], ("float", tile, lanes, groups, taps, self.taps), pack
        )
        start = x.reference
        if joins_rows:
            start -= 4 * (op.padding[0] * x.strides[1] + op.padding[1] * x.strides[2])
        low, high = clamp(self.step)
        made = instruction(
            float_conv_kernel(site.level, tile),
            self.output,
            x=start,
            zeros=site.constant(np.zeros(int(depth), np.float32)),
            table=table,
            weights=site.constant(packed),
            bias=site.constant(pack_channels(self.bias, groups, tile, lanes)),
            added=added,
            out=y.reference,
            pixels=pixels,
            taps=taps,
            depth=depth,
            groups=groups,
            channels=channels,
            pitch=x.pitch or 0,
            group_pitch=inner,
            out_pitch=y.pitch or 0,
            group_out=channels,
            chunk=choose_chunk(tile, pixels, depth, packed.nbytes),
            low=low,
            high=high,
        )
        return [*before, *more, made, *after]
