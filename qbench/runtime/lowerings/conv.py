"""Integer convolutions and dense layers on data of 8 bits, or of 16: the tiled kernel."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.op import Epilogue
from qbench.kernels.conv import conv_kernel
from qbench.kernels.epilogue import EpilogueName, Result, choose_epilogue
from qbench.kernels.isa import ISAS, Element
from qbench.kernels.isa.amx import BYTES
from qbench.kernels.levels import Level
from qbench.kernels.matrix import MATRIX, pack_matrix, steps_of
from qbench.kernels.pack import pack_channels, pack_each, pack_scales, pack_weights, packing
from qbench.kernels.rounding import NUMBERS
from qbench.kernels.shape import EACH, choose_chunk, choose_groups, choose_tile, widens
from qbench.kernels.tile import Tile
from qbench.ops.integer.products import IntegerConv2d, IntegerDense
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import CHANNELS_LAST, Layout, row_major, shape_of
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import gapless, widened
from qbench.runtime.lowerings.products import Products, products
from qbench.runtime.lowerings.rescaling import ELEMENTS
from qbench.runtime.lowerings.windows import input_offsets, offsets_of_rows
from qbench.runtime.memory import SLACK
from qbench.runtime.step import Instruction, Place

_FEW = 16
"""With at most so many channels, a row of the window is read as one tap."""

_MOST = 254
"""The largest weight that two of 8 bits add up to."""


@dataclass(frozen=True)
class Geometry:
    """Where the tiles read: `taps` runs of `depth` codes for each of `pixels` outputs."""

    pixels: int
    taps: int
    depth: int
    groups: int
    pitch: int
    start: int
    """Reference of what offsets count from."""


_PER_CHANNEL = ("bias", *NUMBERS, "scales")
"""Fields of the kernel; all but the first only where sums are rescaled."""


class Tiled(Lowering):
    """A sum of products by tiles; the others say where its pixels are."""

    absorbs = frozenset({Epilogue.BIAS, Epilogue.REQUANTIZE, Epilogue.CLAMP, Epilogue.DEQUANTIZE})
    takes_matrices = True

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.products = self.read()
        rescaled = self.products.rescaling
        if rescaled is not None and rescaled.dtype not in ELEMENTS:
            raise Refused(f"its result is {rescaled.dtype}")
        self.x: Element = "i2" if self.widens else ELEMENTS[self.products.dtype]
        self.y: Result = "u1" if rescaled is None else ELEMENTS[rescaled.dtype]
        if self.products.reals is not None:
            self.y = "f4"
            if self.level is Level.PORTABLE or self.each or (self.epilogue == "exact" and rescaled is not None):
                raise Refused("its kernel makes no real numbers")
        weights = self.products.weights
        if self._cut and (self._groups > 1 or weights.integers.max() > _MOST):
            raise Refused("its weights less their zero point are no 8-bit integers")
        if math.prod(shape_of(graph, self.output)) == 0 or self.products.weights.integers.size == 0:
            raise Refused("it has nothing to compute")

    def read(self) -> Products:
        """What the step computes; Refused where it is none of this kind."""
        return self.once("products", lambda: products(self.step, self.graph))

    @property
    def widens(self) -> bool:
        """Whether it multiplies codes of 8 bits as integers of 16."""
        return False

    @property
    def output(self) -> str:
        return self.step.outputs[0]

    @cached_property
    def constant(self) -> Constant:
        """The weights as they are kept."""
        return self.graph.constants[self.step.head.inputs[1]]

    @property
    def _groups(self) -> int:
        return self.products.op.groups if isinstance(self.products.op, IntegerConv2d) else 1

    @property
    def _cut(self) -> bool:
        """Whether the weights are too wide for the kernel's: the rest is added in further taps."""
        return self.products.weights.wide and self.x == "u1" and not self.each

    @property
    def weights(self) -> NDArray[np.int8 | np.int16]:
        """As much of them as the kernel's weights hold."""
        narrow = self.x == "u1" and not self.each
        return self.products.weights.narrow if narrow else self.products.weights.integers.astype(np.int16)

    @property
    def each(self) -> bool:
        """Whether it is depthwise: each channel has a window of its own."""
        return 1 < self._groups == len(self.products.weights.integers) and self.products.weights.integers.shape[1] == 1

    @property
    def epilogue(self) -> EpilogueName:
        found, bound = self.products.rescaling, self.products.bound
        if found is None:
            return "exact" if bound.max(initial=0) >= 2**31 else "accumulators"
        if self.level is Level.PORTABLE and self.x == "i2":
            return "exact"  # whose biases do not wrap: nor do that level's sums
        isa = ISAS.get(self.level.vectors)
        rounds_down = self.y == "u1" and isa is not None and isa.rounds_down
        return choose_epilogue(found.rounding, bound, found.mantissa, found.shift, found.multiplier, rounds_down)

    def tile(self, pixels: int, channels: int, depth: int, lines: int = 0) -> Tile:
        """The fastest tile; see `choose_tile`."""
        whole = self.x == "u1" and not self.each and not self._cut and self.epilogue != "exact"
        return choose_tile(self.level if whole else self.level.vectors, pixels, channels, depth, self.x, lines)

    def _per_channel(self, epilogue: EpilogueName, groups: int, tile: Tile, lanes: int) -> dict[str, NDArray[Any]]:
        """What is added to sums, and what they are rescaled by, as tiles take it."""
        found, bias, reals = self.products.rescaling, self.products.bias, self.products.reals
        made = {"bias": pack_channels(bias if epilogue == "exact" else bias.astype(np.int32), groups, tile, lanes)}
        if found is not None:
            for name in NUMBERS:
                made[name] = pack_channels(getattr(found, name), groups, tile, lanes)
        if found is not None or reals is not None:
            numbers = None if found is None else found.numbers(self.y == "u1")
            made["scales"] = pack_scales(epilogue, numbers, groups, tile, lanes, reals)
        return made

    def tiled(
        self,
        site: Site,
        geometry: Geometry,
        tile: Tile,
        table: NDArray[Any] | None,
        weights: NDArray[Any],
        into: Place | None = None,
    ) -> Instruction:
        """The one instruction.

        Parameters
        ----------
        table
            Offsets of the taps; None where pixels lie evenly and have one tap.
        weights
            [groups, channels, taps, depth]; [1, channels, pairs of taps, 2] where each channel has its own.
        into
            Where the results go; None: to the place of the step's output.
        """
        lanes, group = packing(site.level, "i2" if self.each else self.x)
        found, epilogue = self.products.rescaling, self.epilogue
        zeros = self.products.op.weight_zero_point, self.products.weights.zeroed
        form = tile, lanes, self.x, self.each, weights.shape, zeros, self.products.taps
        groups, channels = weights.shape[:2]

        def pack() -> NDArray[Any]:
            flat = weights.reshape(channels, -1)
            if tile == MATRIX:
                return pack_matrix(weights)
            return pack_each(flat, tile, site.level) if self.each else pack_weights(weights, tile, lanes, group)

        packed = site.packed(self.constant, form, pack)

        per_channel = self.once((*form, groups), lambda: self._per_channel(epilogue, groups, tile, lanes))
        out, read = into or site.places[self.output], max(geometry.depth + SLACK, tile.vectors * lanes)
        run_taps, run_steps, part_steps = geometry.taps, geometry.depth, geometry.depth
        if tile == MATRIX:
            run_steps = part_steps = steps_of(geometry.taps * geometry.depth)
        if epilogue == "exact" and self.x == "i2":
            run_taps, run_steps = self.once((*form, "run"), lambda: _run(weights, group))
        return instruction(
            conv_kernel(site.level, tile, epilogue, self.x, self.y, self.each),
            self.output,
            x=geometry.start,
            zeros=site.constant(np.full(read, self.products.zero_point, self.x)),
            table=0 if table is None else site.constant(table),
            weights=site.constant(packed),
            out=out.reference,
            **dict.fromkeys(_PER_CHANNEL, 0) | {name: site.constant(values) for name, values in per_channel.items()},
            pixels=geometry.pixels,
            taps=geometry.taps,
            depth=geometry.depth,
            run_taps=run_taps,
            run_steps=run_steps,
            part_steps=part_steps,
            groups=groups,
            channels=channels,
            group_pitch=geometry.depth,
            group_out=channels,
            pitch=geometry.pitch,
            out_pitch=out.strides[-2],
            chunk=choose_chunk(tile, geometry.taps * geometry.depth),
            rounding=found.code if found else 0,
            zero_point=found.zero_point if found else 0,
            low=found.low if found else 0,
            high=found.high if found else 0,
        )


@lowers(IntegerConv2d, rank=1)
class ConvLowering(Tiled):
    """Any window, strides, padding, dilation and groups."""

    def read(self) -> Products:
        return super().read().on_image(self.step, self.graph)

    @property
    def op(self) -> IntegerConv2d:
        assert isinstance(self.products.op, IntegerConv2d)
        return self.products.op

    @property
    def widens(self) -> bool:
        out, channels, *window = self.products.weights.integers.shape
        if ELEMENTS[self.products.dtype] != "u1" or self.op.groups > 1 or (channels <= _FEW and window[1] > 1):
            return False
        n, _, *size = shape_of(self.graph, self.output)
        return widens(self.level, n * math.prod(size), out * math.prod(window) / math.prod(self.op.strides))

    @property
    def joins_rows(self) -> bool:
        """Whether a row of the window is one tap: its few channels lie side by side, padding included."""
        _, channels, _, width = self.products.weights.integers.shape
        return self.x == "u1" and channels <= _FEW and width > 1 and self.op.groups == 1 and self.op.dilation[1] == 1

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        data = CHANNELS_LAST
        if self.joins_rows:
            data = Layout(CHANNELS_LAST.axes, self.op.padding, self.products.zero_point if any(self.op.padding) else 0)
        return Layouts({self.products.data: data}, {self.output: CHANNELS_LAST})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        if self.each:
            return [self._of_each(site)]
        x = site.places[self.products.data]
        if not self.widens:
            return [self._mixed(site, x)]
        wide, made = widened(site, x, self.output)
        return [made, self._mixed(site, wide)]

    def _of_each(self, site: Site) -> Instruction:
        channels, _, height, width = self.weights.shape
        x, (n, *size, _) = site.places[self.products.data], site.places[self.output].shape
        tile, more = EACH[site.level], height * width % 2
        table = input_offsets(self.op, x, (size[0], size[1]), (height, width), tile.rows, False)
        table = np.ascontiguousarray(np.pad(table, ((0, 0), (0, more), (0, 0)), constant_values=-1))
        weights = np.pad(self.weights.reshape(channels, -1), ((0, 0), (0, more))).reshape(1, channels, -1, 2)
        geometry = Geometry(n * math.prod(size), weights.shape[2], 2, 1, x.strides[2], x.reference)
        return self.tiled(site, geometry, tile, table, weights)

    def _mixed(self, site: Site, x: Place) -> Instruction:
        weights, op = self.weights, self.op
        out, inner, height, width = weights.shape
        n, out_height, out_width, _ = site.places[self.output].shape
        pixels = n * out_height * out_width
        joins_rows = self.joins_rows and x.strides[2] == inner  # not where the channels are part of more
        taps, depth = (height, width * inner) if joins_rows else (height * width, inner)
        ordered, groups = _ordered(weights, op.groups, taps, depth), op.groups
        if groups > 1 and self.x == "u1":
            together = choose_groups(self.level.vectors, pixels, groups, out // groups, taps, depth)
            ordered, groups, depth = _joined(ordered, together), groups // together, depth * together
        one_tap = (height, width, *op.strides, *op.padding) == (1, 1, 1, 1, 0, 0, 0, 0)
        evenly = one_tap and x.pitch is not None and not self._cut
        tile = self.tile(pixels, out // groups, taps * depth, 0 if evenly else taps * -(-depth // BYTES))
        table = None
        if not evenly:
            table = input_offsets(op, x, (out_height, out_width), (height, width), tile.rows, joins_rows)
        if table is not None and self._cut:
            rest = _ordered((self.products.weights.integers - weights).astype(np.int8), op.groups, taps, depth)[0]
            table, ordered = _with_rest(table, ordered[0], rest, joins_rows)
            taps, depth = ordered.shape[2:]
        start = x.reference - _border(op, x) if joins_rows else x.reference
        geometry = Geometry(pixels, taps, depth, groups, x.pitch or 0, start)
        return self.tiled(site, geometry, tile, table, ordered)


def _ordered(weights: NDArray[Any], groups: int, taps: int, depth: int) -> NDArray[Any]:
    """As tiles take them: [groups, channels, taps, depth]."""
    return weights.transpose(0, 2, 3, 1).reshape(groups, len(weights) // groups, taps, depth)


def _joined(weights: NDArray[Any], together: int) -> NDArray[Any]:
    """Weights [groups, channels, taps, depth] of so many groups as those of one, with zeros between them."""
    groups, channels, taps, depth = weights.shape
    made = np.zeros((groups // together, together, channels, taps, together, depth), weights.dtype)
    for i in range(together):
        made[:, i, :, :, i] = weights[i::together]
    return made.reshape(groups // together, together * channels, taps, together * depth)


def _run(weights: NDArray[np.int16], group: int) -> tuple[int, int]:
    """How many taps, and how many steps of each, make products that 32 bits hold, whatever the 16-bit data.

    Parameters
    ----------
    weights
        [groups, channels, taps, depth].
    group
        Input elements of a step.
    """
    sizes = np.abs(weights.astype(np.int32)).reshape(-1, *weights.shape[2:])
    taps, steps = sizes.shape[1], -(-sizes.shape[2] // group)

    def fits(taps: int, steps: int) -> bool:
        firsts: list[list[int]] = [[*range(0, sizes.shape[1], taps)], [*range(0, sizes.shape[2], steps * group)]]
        rows = np.add.reduceat(sizes, firsts[1], axis=2)
        return bool(np.add.reduceat(rows, firsts[0], axis=1).max() < 2**16)

    while not fits(taps, steps):
        taps, steps = (-(-taps // 2), steps) if taps > 1 else (1, -(-steps // 2))
    return taps, steps


def _with_rest(
    table: NDArray[np.int32], weights: NDArray[np.int8], rest: NDArray[np.int8], whole: bool
) -> tuple[NDArray[np.int32], NDArray[np.int8]]:
    """Taps that are read once more, for what 8 bits of their weights do not hold.

    Parameters
    ----------
    table
        [blocks, taps, rows], see `kernels.pack.offsets`.
    weights, rest
        [channels, taps, depth].
    whole
        Taps cannot be cut into shorter ones, so that less is read again.

    Returns
    -------
    The table, and the weights as [1, channels, taps, depth], of all taps.
    """
    depth = weights.shape[-1]
    sizes = [depth] if whole else [depth, *(size for size in range(16, depth, 4) if depth % size == 0)]

    def cut(values: NDArray[Any], size: int) -> NDArray[Any]:
        return values.reshape(len(values), -1, size)

    def again(size: int) -> NDArray[np.intp]:
        return np.flatnonzero(np.any(cut(rest, size), axis=(0, 2)))

    def cost(size: int) -> int:  # a tap costs about as much as eight more elements
        return (weights[0].size // size + len(again(size))) * (size + 8)

    size = min(sizes, key=cost)
    more = again(size)
    starts = np.arange(0, depth, size, dtype=np.int32)[:, np.newaxis]
    places = np.where(table[:, :, np.newaxis] < 0, -1, table[:, :, np.newaxis] + starts)
    places = places.reshape(len(table), -1, table.shape[-1])
    joined = np.concatenate([cut(weights, size), cut(rest, size)[:, more]], axis=1)
    return np.ascontiguousarray(np.concatenate([places, places[:, more]], axis=1), np.int32), joined[np.newaxis]


def _border(op: IntegerConv2d, x: Place) -> int:
    """Bytes from the start of the border to the start of the image."""
    return op.padding[0] * x.strides[1] + op.padding[1] * x.strides[2]


@lowers(IntegerDense, rank=1)
class DenseLowering(Tiled):
    """A matrix product with as many pixels as there are rows."""

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        rank = self.graph.types[self.products.data].rank
        return Layouts({self.products.data: row_major(rank)}, {self.output: row_major(rank)})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        x, weights = gapless(site, self.products.data), self.weights
        units, depth = weights.shape
        rows = math.prod(x.place.shape[:-1])
        tile = self.tile(rows, units, depth, -(-depth // BYTES) if self._cut else 0)
        table, ordered = None, weights.reshape(1, units, 1, depth)
        if self._cut:
            table = offsets_of_rows(rows, depth, tile.rows)
            rest = (self.products.weights.integers - weights).astype(np.int8)[:, np.newaxis]
            table, ordered = _with_rest(table, ordered[0], rest, whole=False)
        _, _, taps, run = ordered.shape
        geometry = Geometry(rows, taps, run, 1, depth, x.place.reference)
        return [*x.copies, self.tiled(site, geometry, tile, table, ordered)]
