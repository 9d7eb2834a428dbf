"""Recurrent layers, written out step by step: TFLite's own operators keep their states from run to run."""

from collections.abc import Sequence

import numpy as np

from qbench.exporters.tflite.writer import Inexpressible, Writer, closed, exporter
from qbench.ir.graph import Node
from qbench.ir.op import Array
from qbench.ops.float.recurrent import Gru, Lstm, Recurrent, Rnn

MOST_STEPS = 1000
"""No layer is written out that takes more."""


@exporter(Lstm.name, Gru.name, Rnn.name)
def recurrent(writer: Writer, node: Node) -> None:
    """A product with all of the data, then each step of each direction."""
    op = writer.op(node)
    assert isinstance(op, Recurrent)
    steps, batch, _ = writer.graph.types[node.inputs[0]].shape
    if not isinstance(steps, int) or not 0 < steps <= MOST_STEPS:
        raise Inexpressible(f"{steps} steps; 1 to {MOST_STEPS} can be written out")
    if len(node.inputs) > 4 + op.states or any(name not in writer.graph.constants for name in node.inputs[1:4]):
        raise Inexpressible("peepholes, or weights that are computed")
    kernel, weights, offset = (writer.graph.constants[name].array for name in node.inputs[1:4])
    given = [writer.read(name) for name in node.inputs[4 : 4 + op.states]]
    ways = [_Way(writer, node, op, (kernel[i], weights[i], offset[i]), given, i) for i in range(len(kernel))]
    made = [way.through(steps, op.direction == "reverse" or i > 0) for i, way in enumerate(ways)]
    size = closed(batch)[0], weights.shape[2]
    rows = [
        ways[i].op("PACK", results, (steps, *size), "PackOptions", values_count=steps)
        for i, (results, _) in enumerate(made)
    ]
    writer.emit("PACK", rows, [writer.make(node.outputs[0])], "PackOptions", axis=1, values_count=len(rows))
    for number, name in enumerate(node.outputs[1:]):
        last = [states[number] for _, states in made]
        writer.emit("PACK", last, [writer.make(name)], "PackOptions", values_count=len(last))


class _Way:
    """One direction."""

    def __init__(
        self,
        writer: Writer,
        node: Node,
        op: Recurrent,
        parameters: tuple[Array, Array, Array],
        given: list[int],
        way: int,
    ) -> None:
        self._writer, self._node, self._op = writer, node, op
        self._kernel, self._weights, self._offset = parameters
        self._batch, self._units = closed(writer.graph.types[node.inputs[0]].shape[1])[0], self._weights.shape[1]
        self._weights_of = dict[tuple[int, int | None], tuple[int, int]]()
        self._axis = writer.constant(f"{node.name}.axis", np.asarray(1, np.int32))
        index = writer.integers([way])
        flat = [self.op("GATHER", [state, index], (1, self._batch, self._units), "GatherOptions") for state in given]
        to = writer.integers([self._batch, self._units])
        self._states = [self._same("RESHAPE", state, to) for state in flat]

    def through(self, steps: int, backward: bool) -> tuple[list[int], list[int]]:
        """The result of each step, and the states after the last one."""
        rows, before = len(self._kernel), self._offset[: len(self._kernel)]
        data = self._writer.read(self._node.inputs[0])
        every = self._product(data, self._stored(self._kernel, before), (steps, self._batch, rows))
        entering = self.many("UNPACK", [every], steps, rows, "UnpackOptions", num=steps)
        found = dict[int, int]()
        for step in reversed(range(steps)) if backward else range(steps):
            self._states = self._step(entering[step])
            found[step] = self._states[0]
        return [found[step] for step in range(steps)], self._states

    def op(self, code: str, inputs: Sequence[int], shape: tuple[int, ...], table: str = "", **options: int) -> int:
        """What an operator makes."""
        made = self._writer.between(f"{self._node.name}.part", shape)
        self._writer.emit(code, inputs, [made], table, **options)
        return made

    def many(self, code: str, inputs: Sequence[int], count: int, columns: int, table: str, **options: int) -> list[int]:
        """What an operator makes with several results."""
        made = [self._writer.between(f"{self._node.name}.part", (self._batch, columns)) for _ in range(count)]
        self._writer.emit(code, inputs, made, table, **options)
        return made

    def _same(self, code: str, *inputs: int) -> int:
        table = {"ADD": "AddOptions", "MUL": "MulOptions", "SUB": "SubOptions"}.get(code, "")
        return self.op(code, inputs, (self._batch, self._units), table)

    def _stored(self, weights: Array, offset: Array) -> tuple[int, int]:
        name = self._node.name
        return self._writer.constant(f"{name}.w", weights), self._writer.constant(f"{name}.b", offset)

    def _product(self, data: int, constants: tuple[int, int], shape: tuple[int, ...]) -> int:
        return self.op("FULLY_CONNECTED", [data, *constants], shape, "FullyConnectedOptions", keep_num_dims=True)

    def _again(self, state: int, begin: int = 0, end: int | None = None) -> int:
        """The product of a state with some of the gates' weights, which all steps share."""
        weights, offset = self._weights[begin:end], self._offset[len(self._kernel) :][begin:end]
        if (begin, end) not in self._weights_of:
            self._weights_of[begin, end] = self._stored(weights, offset)
        return self._product(state, self._weights_of[begin, end], (self._batch, len(weights)))

    def _split(self, gates: int, count: int) -> list[int]:
        return self.many("SPLIT", [self._axis, gates], count, self._units, "SplitOptions", num_splits=count)

    def _step(self, entering: int) -> list[int]:
        if isinstance(self._op, Gru):
            return [self._gru(entering, self._states[0])]
        rows = len(self._kernel)
        total = self.op("ADD", [entering, self._again(self._states[0])], (self._batch, rows), "AddOptions")
        if isinstance(self._op, Rnn):
            return [self._same("TANH", total)]
        enter, leave, keep, new = self._split(total, 4)
        enter, leave, keep = (self._same("LOGISTIC", gate) for gate in (enter, leave, keep))
        kept, put = self._same("MUL", keep, self._states[1]), self._same("MUL", enter, self._same("TANH", new))
        cell = self._same("ADD", kept, put)
        return [self._same("MUL", leave, self._same("TANH", cell)), cell]

    def _gru(self, entering: int, hidden: int) -> int:
        update, reset, new = self._split(entering, 3)
        both = self._split(self._again(hidden, 0, 2 * self._units), 2)
        update, reset = (
            self._same("LOGISTIC", self._same("ADD", *pair)) for pair in zip((update, reset), both, strict=True)
        )
        if isinstance(self._op, Gru) and self._op.linear_before_reset:
            again = self._same("MUL", reset, self._again(hidden, 2 * self._units))
        else:
            again = self._again(self._same("MUL", reset, hidden), 2 * self._units)
        new = self._same("TANH", self._same("ADD", new, again))
        # (1 - update) * new + update * hidden
        return self._same("ADD", new, self._same("MUL", update, self._same("SUB", hidden, new)))
