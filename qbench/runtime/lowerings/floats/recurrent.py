"""Recurrent layers: the product with the data of all steps, copies of the states at first, then all steps."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from qbench.ir.graph import Graph
from qbench.ir.op import Array, bind
from qbench.kernels.by_range import PIECES, range_kernel, rounded_kernel
from qbench.kernels.floats.conv import choose_tile, panel_lanes
from qbench.kernels.floats.recurrent import RESETS, recurrent_kernel
from qbench.kernels.levels import Level
from qbench.kernels.pack import pack_channels, pack_weights
from qbench.kernels.tile import Tile
from qbench.ops.float.recurrent import Gru, Lstm, Recurrent, Rnn
from qbench.ops.onnx.dynamic import DynamicLstm
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, row_major, shape_of
from qbench.runtime.lowerings.copy import copy_instructions
from qbench.runtime.lowerings.floats.dense import product
from qbench.runtime.lowerings.floats.places import float_type, need_work, operand_place, scratch
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import gapless
from qbench.runtime.step import Instruction, Place


@lowers(Lstm, Rnn, Gru, rank=5)
class RecurrentLowering(Lowering):
    """All lies in rows; the weights are constants."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, Recurrent)
        first = 4 + op.states
        self.data, *self.weights = step.head.inputs[:4]
        self.states, self.peepholes, self.made = step.head.inputs[4:first], step.head.inputs[first:], step.outputs
        if float_type(graph, *step.head.inputs) != "float32":
            raise Refused("only float32 has a kernel")
        if self.data in graph.constants or any(
            name not in graph.constants for name in (*self.weights, *self.peepholes)
        ):
            raise Refused("its data is a constant, or its weights are none")
        need_work(graph, self.data, self.made[0])
        self.rounds = isinstance(op, DynamicLstm)
        is_linear = isinstance(op, Gru) and op.linear_before_reset
        kind = "lstm" if self.rounds else op.short_name
        self.cell = f"{kind}{'_linear' * is_linear}{'_peepholes' * len(self.peepholes)}"
        self.backward = 0 if op.direction == "reverse" else 1

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        reads, makes = (
            {name: row_major(self.graph.types[name].rank) for name in names}
            for names in (self.step.inputs(self.graph), self.made)
        )
        return Layouts(reads, makes)

    def instructions(self, site: Site) -> Sequence[Instruction]:
        steps, n, inputs = shape_of(self.graph, self.data)
        kernel, recurrence, offset = (self.graph.constants[name] for name in self.weights)
        directions, pitch, units = recurrence.shape
        offsets = np.ascontiguousarray(offset.array.reshape(directions, 2, pitch).swapaxes(0, 1))
        tile = choose_tile(site.level, n, pitch, units)
        early = pitch - units if self.cell == RESETS else pitch
        parts = {"": slice(early), "late_": slice(early, None)}
        packed = self.once(tile, lambda: _packed(recurrence.array, offsets[1], parts, tile, site.level))
        peepholes = self.graph.constants[self.peepholes[0]].array if self.peepholes else np.empty((0, 0), np.float32)
        data, targets = gapless(site, self.data), [gapless(site, name, output=True) for name in self.made]
        y, hidden, *_, cell = (target.place.reference for target in (*targets, targets[-1]))
        given = scratch(site, (steps * n, directions * pitch), (0, 1))
        rows = replace(data.place, shape=(steps * n, inputs), strides=(inputs, 1), axes=(0, 1))
        before = [*data.copies]
        if self.rounds:
            ahead, rows = self._rounded(site, rows)
            before += ahead
        before += [product(site, self.made[0], rows, given, kernel, offsets[0].reshape(-1))]
        for state, last in zip(self.states, targets[1:], strict=True):
            before += copy_instructions(operand_place(site, state), last.place)
        made = instruction(
            recurrent_kernel(site.level, tile, self.cell, self.rounds), self.made[0], given=given.reference,
            y=y, hidden=hidden, cell=cell, work=site.workspace(directions * n * pitch * 4), steps=steps, n=n,
            units=units, directions=directions, backward=self.backward,
            rounded=site.workspace(directions * n * units * 4 if self.rounds else 0),
            peepholes=site.constant(peepholes), holes=peepholes.shape[1],
            **{name: site.constant(array) for name, array in packed.items()},
            **{f"{name.removesuffix('s')}_bytes": array[0].nbytes for name, array in packed.items()},
        )  # fmt: skip
        return [*before, made, *(copy for target in targets for copy in target.copies)]

    def _rounded(self, site: Site, rows: Place) -> tuple[list[Instruction], Place]:
        """The data as the numbers that stand for it where its range is cut into 256."""
        made, ranges = scratch(site, rows.shape, (0, 1)), site.workspace(8 * PIECES)
        x, count = rows.reference, math.prod(rows.shape)
        find = instruction(range_kernel(), f"{self.data}: range", x=x, ranges=ranges, samples=1, count=count)
        turn = instruction(rounded_kernel(), self.data, x=x, out=made.reference, ranges=ranges, count=count)
        return [find, turn], made


def _packed(recurrence: Array, offset: Array, parts: Mapping[str, slice], tile: Tile, level: Level) -> dict[str, Array]:
    """The weights and offsets (directions, gates * units, ...) of some gates, as products read them, by direction."""
    lanes, made = panel_lanes(level), dict[str, Array]()
    for name, part in parts.items():
        weights = [pack_weights(each[part][None, :, None], tile, lanes, 1) for each in recurrence]
        made[f"{name}weights"] = np.stack(weights)
        made[f"{name}offset"] = np.stack([pack_channels(each[part], 1, tile, lanes) for each in offset])
    return made
