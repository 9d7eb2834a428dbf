"""Loops of Keras whose body is one step of an LSTM, a GRU or a plain recurrent layer."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qbench.errors import QBenchError
from qbench.frontends.tflite.builder import Builder, Value
from qbench.frontends.tflite.source import ABSENT, Array, SourceModel, SourceOperator, SourceTensor
from qbench.ir.graph import Attr
from qbench.ops.float.recurrent import Gru, Lstm, Recurrent, Rnn
from qbench.quant.arithmetic import dequantize

_ORDER: dict[int, tuple[type[Recurrent], tuple[int, ...]]] = {
    4: (Lstm, (0, 3, 1, 2)),
    3: (Gru, (0, 1, 2)),
    1: (Rnn, (0,)),
}
"""By the number of gates: the op, and which gate of Keras is each of the op's."""

_MOST_NUMBERS = 2**24
"""No body of larger tensors is tried."""

Computed = Callable[[SourceModel, Sequence[Array]], Sequence[Array | None]]
"""What a function of the file makes of arrays."""


@dataclass(frozen=True, eq=False)
class Cell:
    """One step: its op, its parameters as the op wants them, and which of the loop's tensors are what."""

    op: Recurrent
    parameters: tuple[Array, Array, Array]
    data: int
    states: tuple[int, ...]
    """Of the hidden state and, of an LSTM, the cell."""
    made: int
    """Of all results, or of the last one."""
    whole: bool
    """Whether of all."""
    counters: tuple[int, ...]

    def emitted(self, builder: Builder, given: Sequence[Value], steps: int) -> list[Value]:
        """What the loop leaves of each of its tensors."""
        left = list(given)
        for place in self.counters:
            left[place] = builder.known(np.asarray(steps, given[place].dtype))
        states = [builder.emit("expand_dims", given[place], axes=(0,)) for place in self.states]
        operands = [given[self.data], *map(builder.known, self.parameters), *states]
        attrs: dict[str, Attr] = {"linear_before_reset": True} if isinstance(self.op, Gru) else {}
        y, *last = builder.emit_many(self.op.name, operands, (None,) * (1 + len(states)), attrs, nchw=False)
        for place, value in zip(self.states, last, strict=True):
            left[place] = builder.emit("squeeze", value, axes=(0,))
        left[self.made] = builder.emit("squeeze", y, axes=(1,)) if self.whole else last[0]
        return left


def cell_of(body: SourceModel, computed: Computed) -> Cell | None:
    """The layer that a body is a step of; None where it is another one, or something else.

    What the parameters must be follows from which tensors they are multiplied with; that the rest of the body does with
    them what the op does is tried on random numbers.

    Parameters
    ----------
    computed
        Runs a function of the file.
    """
    found = _Body(body).cell()
    return found if found is not None and _agrees(body, found, computed) else None


class _Body:
    def __init__(self, body: SourceModel) -> None:
        self.body, self.tensors = body, body.tensors
        self.makers = {number: op for op in body.operators for number in op.output_numbers}
        self.places = {number: place for place, number in enumerate(body.inputs)}

    def cell(self) -> Cell | None:
        kinds = [self.tensors[number] for number in self.body.inputs]
        data = [p for p, pair in enumerate(zip(self.body.inputs, self.body.outputs, strict=True)) if pair[0] == pair[1]]
        counters = tuple(
            p for p, kind in enumerate(kinds) if kind.dtype == "int32" and not kind.shape and self._counts(p)
        )
        products = [op for op in self.body.operators if op.op == "FULLY_CONNECTED"]
        if len(data) != 1 or len(products) != 2 or len(data) + len(counters) + 2 > len(kinds):
            return None
        entering = [op for op in products if self._picked(op.inputs[0], data[0], counters)]
        again = [op for op in products if self._behind(op.inputs[0]) in self.places]
        if len(entering) != 1 or len(again) != 1:
            return None
        hidden = self.places[self._behind(again[0].inputs[0])]
        rest = [p for p in range(len(kinds)) if p not in (*data, *counters, hidden)]
        flat = tuple(p for p in rest if len(kinds[p].shape) == 2)
        made = [p for p in rest if len(kinds[p].shape) == 3]
        whole = self._stacks(made[0], hidden) if len(made) == 1 and len(rest) == 1 + len(flat) else None
        parameters = self._parameters(entering[0], again[0])
        if whole is None or parameters is None:
            return None
        gates = parameters[0].shape[1] // parameters[1].shape[2]
        if gates not in _ORDER or len(flat) + 1 != _ORDER[gates][0].states:
            return None
        kind, order = _ORDER[gates]
        op = Gru(linear_before_reset=True) if kind is Gru else kind()
        ordered = (_by_gate(parameters[0], gates, order), _by_gate(parameters[1], gates, order))
        offset = np.concatenate([_by_gate(part, gates, order) for part in np.split(parameters[2], 2, axis=1)], axis=1)
        return Cell(op, (*ordered, offset), data[0], (hidden, *flat), made[0], whole, counters)

    def _behind(self, number: int) -> int:
        """What a tensor is, shapes aside."""
        for _ in self.body.operators:  # a damaged file may go round in circles
            op = self.makers.get(number)
            if op is None or op.op != "RESHAPE":
                break
            number = op.inputs[0]
        return number

    def _counts(self, place: int) -> bool:
        op = self.makers.get(self.body.outputs[place])
        if op is None or op.op != "ADD" or self.body.inputs[place] not in op.inputs:
            return False
        (step,) = [n for n in op.inputs if n != self.body.inputs[place]] or [ABSENT]
        array = None if step == ABSENT else self.tensors[step].array
        return array is not None and array.size == 1 and array.item() == 1

    def _picked(self, number: int, data: int, counters: tuple[int, ...]) -> bool:
        op = self.makers.get(self._behind(number))
        wanted = [(self.body.inputs[data], self.body.inputs[place]) for place in counters]
        return op is not None and op.op == "GATHER" and op.inputs in wanted and not op.integer("axis")

    def _stacks(self, place: int, hidden: int) -> bool | None:
        """Whether each new hidden state is put beside those before; None where something else is made."""
        number, state = self.body.outputs[place], self._behind(self.body.outputs[hidden])
        if self._behind(number) == state:
            return False
        op = self.makers.get(number)
        if op is None or op.op != "CONCATENATION" or len(op.inputs) != 3 or op.integer("axis"):
            return None
        before, new, after = op.inputs
        slices = [self.makers.get(n) for n in (before, after)]
        same = all(s is not None and s.op == "SLICE" and s.inputs[0] == self.body.inputs[place] for s in slices)
        return True if same and self._behind(new) == state else None

    def _parameters(self, entering: SourceOperator, again: SourceOperator) -> tuple[Array, Array, Array] | None:
        """Kernel, recurrence and both offsets, one after the other, of one direction."""
        kernel, recurrence = (_real(self.tensors[op.inputs[1]]) for op in (entering, again))
        if kernel is None or recurrence is None:
            return None
        rows, units = recurrence.shape
        if len(kernel) != rows or rows % units:
            return None
        none = np.zeros(rows, np.float32)
        before, after = sum(self._added(entering, rows, True), none), sum(self._added(again, rows, False), none)
        return kernel[None], recurrence[None], np.concatenate([before, after])[None]

    def _added(self, product: SourceOperator, rows: int, joined: bool) -> Iterator[Array]:
        """The vectors that are added to a product, and also those that are added to what is the sum of both."""
        number = ABSENT
        for op in self.body.operators:
            given = [n for n in op.inputs if n != ABSENT]
            if op is not product and (op.op != "ADD" or number not in map(self._behind, given)):
                continue
            arrays = [array for array in (self.tensors[n].array for n in given) if array is not None]
            if op is not product and not arrays and not joined:
                return
            yield from (array.reshape(-1) for array in arrays if array.size == rows)
            number = op.output_numbers[0]


def _real(weight: SourceTensor) -> Array | None:
    """The numbers of a weight, which may be stored as integers."""
    array, q = weight.array, weight.qparams
    return array if array is None or q is None else dequantize(array, q)


def _by_gate(array: Array, gates: int, order: tuple[int, ...]) -> Array:
    parts = np.split(array, gates, axis=1)
    return np.concatenate([parts[gate] for gate in order], axis=1)


def _agrees(body: SourceModel, cell: Cell, computed: Computed) -> bool:
    """Whether the op makes of random numbers what the body does."""
    kinds = [body.tensors[number] for number in body.inputs]
    wanted = [body.outputs[place] for place in cell.states]
    shapes = [tuple(size or 1 for size in kind.shape) for kind in kinds]
    if sum(map(math.prod, shapes)) > _MOST_NUMBERS:
        return False
    rng = np.random.default_rng(0)
    feeds = [
        np.zeros((), np.int32) if place in cell.counters else rng.normal(size=shape).astype(np.float32)
        for place, shape in enumerate(shapes)
    ]
    try:
        found = computed(_only(body, wanted), feeds)
        states = [feeds[place][None] for place in cell.states]
        _, *expected = cell.op.compute(feeds[cell.data][:1], *cell.parameters, *states)
    except (QBenchError, ValueError):  # sizes that do not fit: it is something else
        return False
    return all(
        theirs is not None and np.allclose(ours[0], theirs, rtol=1e-4, atol=1e-5)
        for ours, theirs in zip(expected, found, strict=True)
    )


def _only(body: SourceModel, wanted: Sequence[int]) -> SourceModel:
    """A body that makes nothing else."""
    needed, kept = {*wanted}, list[SourceOperator]()
    for op in reversed(body.operators):
        if needed & {*op.output_numbers}:
            needed |= {*op.inputs}
            kept.append(op)
    return replace(body, outputs=tuple(wanted), operators=tuple(reversed(kept)))
