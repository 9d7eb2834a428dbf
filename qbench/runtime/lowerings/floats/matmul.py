"""Products of two activations, or of an activation and a stack of constant matrices."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from qbench.ir.graph import Graph
from qbench.ir.op import Epilogue, bind
from qbench.kernels.floats.conv import choose_chunk, choose_tile, float_conv_kernel, panel_lanes
from qbench.kernels.floats.pack import pack_kernel
from qbench.kernels.levels import Level
from qbench.ops.float.dense import BatchMatmul
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, row_major, shape_of
from qbench.runtime.lowerings.floats.places import (
    clamp,
    constant_place,
    float_type,
    in_order,
    need_work,
    result,
    strides_within,
    widened,
)
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.step import Instruction, Place, Rows


@lowers(BatchMatmul, rank=5)
class FloatMatmulLowering(Lowering):
    """The right operand is packed on the way, then tiles run as in a dense layer."""

    absorbs = frozenset({Epilogue.CLAMP})

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        self.lhs, self.rhs = step.head.inputs
        self.output, self.by_rows = step.outputs[0], (self.lhs,)
        self.dtype = float_type(graph, self.lhs, self.rhs)
        if self.dtype == "float16" and len(step.nodes) > 1:
            raise Refused("float16 is rounded after every op")
        need_work(graph, self.lhs, self.rhs, self.output)
        self.batch = shape_of(graph, self.output)[:-2]
        if sum(size > 1 for size in self.batch) > 2 and any(
            self._repeats(shape_of(graph, name)) for name in (self.lhs, self.rhs)
        ):
            raise Refused("its operands broadcast along some of three axes of the batch or more")

    def _repeats(self, shape: tuple[int, ...]) -> bool:
        """Whether an operand of this shape broadcasts along some axes of the batch only, and is to be written out."""
        return math.prod(shape[:-2]) not in (1, math.prod(self.batch))

    @property
    def op(self) -> BatchMatmul:
        op = bind(self.step.head)
        assert isinstance(op, BatchMatmul)
        return op

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        inputs: dict[str, Layout | None] = {
            name: row_major(self.graph.types[name].rank) for name in self.step.inputs(self.graph)
        }
        return Layouts(inputs, {self.output: row_major(self.graph.types[self.output].rank)})

    def instructions(self, site: Site) -> Sequence[Instruction]:
        groups, level = math.prod(self.batch), site.level
        a, before = self._operand(site, self.lhs, turned=self.op.transpose_lhs)
        b, more = self._operand(site, self.rhs, turned=False)
        y, after = result(site, in_order(site.places[self.output], range(len(self.batch) + 2)), gaps=False)
        rows, depth = a.shape[-2:]
        columns = y.shape[-1]
        tile, (down, across) = choose_tile(level, rows, columns, depth), b.strides[-2:]
        if self.op.transpose_rhs:
            down, across = across, down
        width = tile.vectors * panel_lanes(level)
        panels = -(-columns // width)
        packed_bytes = 4 * groups * panels * depth * width
        packed = site.workspace(packed_bytes)
        pack = instruction(
            pack_kernel(width),
            f"{self.output}: packed",
            x=b.reference,
            out=packed,
            groups=groups,
            depth=depth,
            channels=columns,
            x_group=0 if math.prod(b.shape[:-2]) == 1 else b.shape[-2] * b.shape[-1],
            x_depth=down,
            x_channel=across,
        )
        low, high = clamp(self.step)
        group_pitch = 0 if math.prod(a.shape[:-2]) == 1 else rows * depth
        cut = Rows(
            groups, rows, {"x": ()}, "out", {"x": 4 * depth, "out": 4 * columns}, {"pixels": 1},
            jumps={
                "x": 4 * group_pitch, "out": 4 * rows * columns, "weights": packed_bytes // groups,
                "bias": 4 * panels * width,
            },
            single={"groups": 1}, together=tile.rows,
        )  # fmt: skip
        product = instruction(
            float_conv_kernel(level, tile),
            self.output,
            cut,
            x=a.reference,
            zeros=0,
            table=0,
            weights=packed,
            bias=site.constant(np.zeros(groups * panels * width, np.float32)),
            added=0,
            out=y.reference,
            pixels=rows,
            taps=1,
            depth=depth,
            groups=groups,
            channels=columns,
            pitch=depth,
            group_pitch=group_pitch,
            out_pitch=columns,
            group_out=rows * columns,
            chunk=choose_chunk(tile, rows, depth, packed_bytes // groups),
            low=low,
            high=high,
        )
        return [*before, *more, pack, product, *after]

    def _operand(self, site: Site, name: str, turned: bool) -> tuple[Place, list[Instruction]]:
        """An operand as float32 without gaps, its last two axes exchanged if it is to be turned."""
        constant = name in self.graph.constants
        rank = self.graph.types[name].rank
        place = constant_place(site, name) if constant else in_order(site.places[name], range(rank))
        if self._repeats(place.shape):
            shape, rank = (*self.batch, *place.shape[-2:]), len(self.batch) + 2
            place = replace(
                place, shape=shape, strides=strides_within(place, shape, range(rank)), axes=tuple(range(rank))
            )
        if turned:
            place = in_order(place, (*range(rank - 2), rank - 1, rank - 2))
        return widened(site, place, gaps=False)
