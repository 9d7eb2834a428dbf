"""Recurrent layers: the product with the data of all steps, copies of the states at first, then all steps."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.ir.graph import Graph
from qbench.ir.op import bind
from qbench.kernels.by_range import PIECES, range_kernel, rounded_kernel
from qbench.kernels.floats.conv import choose_tile, panel_lanes
from qbench.kernels.floats.recurrent import CELLS, RESETS, Product, recurrent_kernel
from qbench.kernels.floats.stored_product import bytes_of_parts, choose_stored_tile, pack_columns, pack_stored
from qbench.kernels.levels import Level
from qbench.kernels.pack import pack_channels, pack_weights
from qbench.kernels.tile import Tile
from qbench.ops.float.recurrent import Gru, Lstm, Recurrent, Rnn
from qbench.ops.integer.recurrent import StoredRecurrent
from qbench.ops.onnx.dynamic import DynamicLstm
from qbench.runtime.fuse import Fused
from qbench.runtime.layout import Layout, row_major, shape_of
from qbench.runtime.lowerings.copy import copy_instructions
from qbench.runtime.lowerings.floats.dense import product
from qbench.runtime.lowerings.floats.places import float_type, need_work, operand_place, scratch
from qbench.runtime.lowerings.lowering import Layouts, Lowering, Refused, Site, instruction, lowers
from qbench.runtime.lowerings.operands import gapless
from qbench.runtime.step import Instruction, Place

_Packed = dict[str, NDArray[Any]]


@lowers(Lstm, Rnn, Gru, rank=5)
class RecurrentLowering(Lowering):
    """All lies in rows; the weights are constants."""

    def __init__(self, step: Fused, graph: Graph, level: Level) -> None:
        super().__init__(step, graph, level)
        op = bind(step.head)
        assert isinstance(op, Recurrent)
        self.data, *self.weights = step.head.inputs[:4]
        self.states, self.peepholes = step.head.inputs[4 : 4 + op.states], step.head.inputs[4 + op.states :]
        self.made = step.outputs
        if float_type(graph, self.data, *self.states, *self.made) != "float32":
            raise Refused("only float32 has a kernel")
        if self.data in graph.constants or any(
            name not in graph.constants for name in (*self.weights, *self.peepholes)
        ):
            raise Refused("its data is a constant, or its weights are none")
        need_work(graph, self.data, self.made[0])
        self.product: Product = (
            "stored" if isinstance(op, StoredRecurrent) else "rounded" if isinstance(op, DynamicLstm) else ""
        )
        is_linear = isinstance(op, Gru) and op.linear_before_reset
        cell = next(kind for kind in (Lstm, Rnn, Gru) if isinstance(op, kind)).name.removeprefix("nn.")
        self.cell = f"{cell}{'_linear' * is_linear}{'_peepholes' * len(self.peepholes)}"
        self.backward = 0 if op.direction == "reverse" else 1

    def layouts(self, home: Mapping[str, Layout]) -> Layouts:
        reads, makes = (
            {name: row_major(self.graph.types[name].rank) for name in names}
            for names in (self.step.inputs(self.graph), self.made)
        )
        return Layouts(reads, makes)

    def instructions(self, site: Site) -> Sequence[Instruction]:
        steps, directions, n, units = shape_of(self.graph, self.made[0])
        pitch = CELLS[self.cell][0] * units
        packed, tile = self._stored(site, n) if self.product == "stored" else self._real(site, n)
        peepholes = self.graph.constants[self.peepholes[0]].array if self.peepholes else np.empty((0, 0), np.float32)
        before, given = self._entering(site)
        targets = [gapless(site, name, output=True) for name in self.made]
        y, hidden, *_, cell = (target.place.reference for target in (*targets, targets[-1]))
        for state, last in zip(self.states, targets[1:], strict=True):
            before += copy_instructions(operand_place(site, state), last.place)
        rounded = {"": 0, "rounded": units * 4, "stored": bytes_of_parts(units)}[self.product]
        made = instruction(
            recurrent_kernel(site.level, tile, self.cell, self.product), self.made[0], given=given.reference,
            y=y, hidden=hidden, cell=cell, work=site.workspace(directions * n * pitch * 4), steps=steps, n=n,
            units=units, directions=directions, backward=self.backward,
            rounded=site.workspace(directions * n * rounded), rounded_bytes=rounded,
            peepholes=site.constant(peepholes), holes=peepholes.shape[1],
            **{name: site.constant(array) for name, array in packed.items()},
            **{f"{name.removesuffix('s')}_bytes": array[0].nbytes for name, array in packed.items()},
        )  # fmt: skip
        return [*before, made, *(copy for target in targets for copy in target.copies)]

    def _constant(self, index: int) -> NDArray[Any]:
        return self.graph.constants[self.weights[index]].array

    def _entering(self, site: Site) -> tuple[list[Instruction], Place]:
        """The products with the data of all steps, and what makes them."""
        data = gapless(site, self.data)
        if self.product == "stored":
            return [*data.copies], data.place
        steps, n, inputs = shape_of(self.graph, self.data)
        kernel, offset = self.graph.constants[self.weights[0]], self._constant(2)
        given = scratch(site, (steps * n, math.prod(kernel.shape[:2])), (0, 1))
        rows = replace(data.place, shape=(steps * n, inputs), strides=(inputs, 1), axes=(0, 1))
        before = [*data.copies]
        if self.product == "rounded":
            ahead, rows = self._rounded(site, rows)
            before += ahead
        first = np.ascontiguousarray(np.split(offset, 2, axis=1)[0]).reshape(-1)
        return [*before, product(site, self.made[0], rows, given, kernel, first)], given

    def _rounded(self, site: Site, rows: Place) -> tuple[list[Instruction], Place]:
        """The data as the numbers that stand for it where its range is cut into 256."""
        made, ranges = scratch(site, rows.shape, (0, 1)), site.workspace(8 * PIECES)
        x, count = rows.reference, math.prod(rows.shape)
        find = instruction(range_kernel(), f"{self.data}: range", x=x, ranges=ranges, samples=1, count=count)
        turn = instruction(rounded_kernel(), self.data, x=x, out=made.reference, ranges=ranges, count=count)
        return [find, turn], made

    def _real(self, site: Site, n: int) -> tuple[_Packed, Tile]:
        """What the products with the states read, and their tile."""
        recurrence, offset = self._constant(1), np.split(self._constant(2), 2, axis=1)[1]
        tile, lanes = choose_tile(site.level, n, *recurrence.shape[1:]), panel_lanes(site.level)

        def pack(gates: slice) -> tuple[NDArray[Any], NDArray[Any]]:
            weights = [pack_weights(each[gates][None, :, None], tile, lanes, 1) for each in recurrence]
            return np.stack(weights), np.stack([pack_channels(each[gates], 1, tile, lanes) for each in offset])

        return self.once(tile, lambda: self._by_gates(pack)), tile

    def _stored(self, site: Site, n: int) -> tuple[_Packed, Tile]:
        """The same of weights in 8 bits."""
        recurrence, scales, offset = map(self._constant, range(3))
        tile = choose_stored_tile(site.level, n, *recurrence.shape[1:])

        def pack(gates: slice) -> tuple[NDArray[Any], NDArray[Any]]:
            weights = [pack_stored(each[gates], tile, site.level) for each in recurrence]
            columns = [
                pack_columns(each[gates], scale[gates], added[gates], tile, site.level)
                for each, scale, added in zip(recurrence, scales, offset, strict=True)
            ]
            return np.stack(weights), np.stack(columns)

        return self.once(tile, lambda: self._by_gates(pack)), tile

    def _by_gates(self, pack: Callable[[slice], tuple[NDArray[Any], NDArray[Any]]]) -> _Packed:
        """Weights and numbers of columns (directions, ...), of all gates or of those before the last, and of that."""
        before = 2 * shape_of(self.graph, self.made[0])[3] if self.cell == RESETS else None
        early, rest = slice(before), slice(before, None) if before else slice(0)
        made = _Packed()
        made["weights"], made["offset"] = pack(early)
        made["late_weights"], made["late_offset"] = pack(rest)
        return made
