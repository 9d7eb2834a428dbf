"""Recurrent layers, as ONNX has them: gates in its order, one or two directions, states as operands and results."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from qbench.ir.op import Array, register
from qbench.ir.types import TensorType, dim_product, numel
from qbench.ops.numeric.special import sigmoid
from qbench.ops.rules import FloatOp, need_equal, need_float, need_rank, require

Direction = Literal["forward", "reverse", "bidirectional"]


@dataclass(frozen=True, kw_only=True)
class Recurrent(FloatOp):
    """What recurrent layers share.

    data (steps, n, in), kernel (directions, gates * units, in), recurrence (directions, gates * units, units), offset
    (directions, 2 * gates * units), and states (directions, n, units), which come back after the last step; the first
    result is (steps, directions, n, units).
    """

    float_reason = "default for this op: its state goes round many times, and so do its errors; its weights have 8 bits"
    reads_integers = True
    samples = 1
    gates: ClassVar[int]
    states: ClassVar[int] = 1
    """How many go from step to step."""
    direction: Direction = "forward"

    @property
    def stored(self) -> Mapping[int, int]:
        return {1: 1, 2: 1}

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        data, kernel, recurrence, offset, *states = types
        need_float(self, *types)
        for name, given in zip(self.operands, types, strict=False):
            need_rank(self, name, given, 2 if given is offset else 3)
        count, units = 2 if self.direction == "bidirectional" else 1, recurrence.shape[2]
        rows = dim_product((self.gates, units))
        need_equal(self, "the shape of kernel", kernel.shape, (count, rows, data.shape[2]))
        need_equal(self, "the shape of recurrence", recurrence.shape, (count, rows, units))
        need_equal(self, "the shape of offset", offset.shape, (count, dim_product((2, rows))))
        for state in states:
            need_equal(self, "the shape of a state", state.shape, (count, data.shape[1], units))
        return TensorType((data.shape[0], count, data.shape[1], units), data.dtype), *states

    def macs(self, *types: TensorType) -> int:
        data, kernel, recurrence = types[:3]
        return numel(data.shape[:2]) * (numel(kernel.shape) + numel(recurrence.shape))

    def compute(self, *arrays: Array) -> tuple[Array, ...]:
        data, kernel, recurrence, offset, *others = arrays
        before, after = np.split(offset, 2, axis=1)
        entering = [data @ weights.T + added for weights, added in zip(kernel, before, strict=True)]
        return self.unrolled(entering, recurrence, after, others)

    def unrolled(
        self, entering: Sequence[Array], recurrence: Array, offset: Array, others: Sequence[Array]
    ) -> tuple[Array, ...]:
        """All results of what enters each direction (steps, n, gates * units), the products with the data."""
        states, more = others[: self.states], others[self.states :]
        steps, n, _ = entering[0].shape
        made = np.empty((steps, len(entering), n, recurrence.shape[2]), entering[0].dtype)
        last: list[list[Array]] = []
        for way, given in enumerate(entering):
            now = [state[way] for state in states]
            again = partial(self.again, recurrence[way], offset[way])
            for t in reversed(range(steps)) if way or self.direction == "reverse" else range(steps):
                now = self.step(given[t], now, again, *(array[way] for array in more))
                made[t, way] = now[0]
            last.append(now)
        return made, *(np.stack(state) for state in zip(*last, strict=True))

    def again(self, recurrence: Array, offset: Array, state: Array, gates: slice = slice(None)) -> Array:
        """The product with a state (n, units), of some gates' rows."""
        return state @ recurrence[gates].T + offset[gates]

    @abstractmethod
    def step(self, entering: Array, states: list[Array], again: Callable[..., Array], *more: Array) -> list[Array]:
        """The states after one time step; the first is the result.

        Parameters
        ----------
        entering
            (n, gates * units).
        states
            (n, units) each.
        again
            Takes a state, and the rows of some gates; see :meth:`again`.
        more
            What only some layers have.
        """


@register
class Lstm(Recurrent):
    """Long short-term memory; gates: input, output, forget, cell.

    Where it has peepholes (directions, 3 * units: input, output, forget), its gates see the cell too, each unit its
    own: the output gate as it has become, the others as it was.
    """

    name = "nn.lstm"
    operands = ("data", "kernel", "recurrence", "offset", "hidden", "cell", "*peepholes")
    gates = 4
    states = 2

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        usual, peepholes = types[:6], types[6:]
        need_float(self, *types)
        made = super().infer(*usual)
        require(len(peepholes) <= 1, f"{self.name} takes one tensor of peepholes, not {len(peepholes)}")
        for given in peepholes:
            count, _, units = made[1].shape
            need_equal(self, "the shape of peepholes", given.shape, (count, dim_product((3, units))))
        return made

    def step(self, entering: Array, states: list[Array], again: Callable[..., Array], *more: Array) -> list[Array]:
        hidden, cell = states
        enter, leave, keep, new = np.split(entering + again(hidden), 4, axis=-1)
        seen = np.split(more[0], 3) if more else None
        if seen:
            enter, keep = enter + seen[0] * cell, keep + seen[2] * cell
        cell = sigmoid(keep) * cell + sigmoid(enter) * np.tanh(new)
        if seen:
            leave = leave + seen[1] * cell
        return [sigmoid(leave) * np.tanh(cell), cell]


@register
class Rnn(Recurrent):
    """A plain recurrent layer: its state is the hyperbolic tangent of both products."""

    name = "nn.rnn"
    operands = ("data", "kernel", "recurrence", "offset", "hidden")
    gates = 1

    def step(self, entering: Array, states: list[Array], again: Callable[..., Array], *more: Array) -> list[Array]:
        return [np.tanh(entering + again(states[0]))]


@register
class Gru(Recurrent):
    """Gated recurrent unit; gates: update, reset, hidden."""

    name = "nn.gru"
    operands = ("data", "kernel", "recurrence", "offset", "hidden")
    gates = 3
    linear_before_reset: bool = False
    """Whether the reset gate scales the product with the state, as in PyTorch, or the state before it."""

    def step(self, entering: Array, states: list[Array], again: Callable[..., Array], *more: Array) -> list[Array]:
        (hidden,) = states
        units = hidden.shape[-1]
        early, late = slice(2 * units), slice(2 * units, None)
        gates = sigmoid(entering[:, early] + again(hidden, early))
        update, reset = gates[:, :units], gates[:, units:]
        if self.linear_before_reset:
            new = np.tanh(entering[:, late] + reset * again(hidden, late))
        else:
            new = np.tanh(entering[:, late] + again(reset * hidden, late))
        return [(1 - update) * new + update * hidden]
