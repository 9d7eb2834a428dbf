"""Recurrent layers in float32: the product with the state, the gates, and the states that go round.

The product with the data waits for no state, so it is made for all steps ahead.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from qbench.kernels.by_range import round_all, scale_of
from qbench.kernels.floats.functions import FUNCTIONS
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.memory import view
from qbench.kernels.split import at, share

_one, _sigmoid, _tanh = np.float32(1), FUNCTIONS["sigmoid"], FUNCTIONS["tanh"]


@register_jitable
def _add_product(x: Any, weights: Any, count: Any, pitch: Any, column: Any, sums: Any) -> None:
    """``sums[column:] += x @ weights[:count, column:]``, four rows of the weights at a time."""
    whole = count // 4 * 4
    for k in range(0, whole, 4):
        a, b, c, d = x[k], x[k + 1], x[k + 2], x[k + 3]
        row = k * pitch
        for i in range(column, pitch):
            sums[at(i)] += (
                a * weights[at(row + i)]
                + b * weights[at(row + pitch + i)]
                + c * weights[at(row + 2 * pitch + i)]
                + d * weights[at(row + 3 * pitch + i)]
            )
    for k in range(whole, count):
        a, row = x[k], k * pitch
        for i in range(column, pitch):
            sums[at(i)] += a * weights[at(row + i)]


@register_jitable
def _rnn(given: Any, again: Any, hidden: Any, cell: Any, peepholes: Any, units: Any) -> None:
    for i in range(units):
        hidden[i] = _tanh(given[i] + again[i], _one, _one)


@register_jitable
def _lstm(given: Any, again: Any, hidden: Any, cell: Any, peepholes: Any, units: Any) -> None:
    for i in range(units):
        enter = _sigmoid(given[i] + again[i], _one, _one)
        leave = _sigmoid(given[at(units + i)] + again[at(units + i)], _one, _one)
        keep = _sigmoid(given[at(2 * units + i)] + again[at(2 * units + i)], _one, _one)
        new = _tanh(given[at(3 * units + i)] + again[at(3 * units + i)], _one, _one)
        cell[i] = keep * cell[i] + enter * new
        hidden[i] = leave * _tanh(cell[i], _one, _one)


@register_jitable
def _lstm_peepholes(given: Any, again: Any, hidden: Any, cell: Any, peepholes: Any, units: Any) -> None:
    """The output gate sees the cell as it has become, the other two as it was."""
    for i in range(units):
        before = cell[i]
        enter = _sigmoid(given[i] + again[i] + peepholes[i] * before, _one, _one)
        keep = given[at(2 * units + i)] + again[at(2 * units + i)] + peepholes[at(2 * units + i)] * before
        new = _tanh(given[at(3 * units + i)] + again[at(3 * units + i)], _one, _one)
        after = _sigmoid(keep, _one, _one) * before + enter * new
        leave = given[at(units + i)] + again[at(units + i)] + peepholes[at(units + i)] * after
        cell[i] = after
        hidden[i] = _sigmoid(leave, _one, _one) * _tanh(after, _one, _one)


@register_jitable
def _gru_linear(given: Any, again: Any, hidden: Any, cell: Any, peepholes: Any, units: Any) -> None:
    for i in range(units):
        update = _sigmoid(given[i] + again[i], _one, _one)
        reset = _sigmoid(given[at(units + i)] + again[at(units + i)], _one, _one)
        new = _tanh(given[at(2 * units + i)] + reset * again[at(2 * units + i)], _one, _one)
        hidden[i] = (_one - update) * new + update * hidden[i]


@register_jitable
def _gru(given: Any, again: Any, hidden: Any, cell: Any, peepholes: Any, units: Any) -> None:
    """`again` holds what `_reset` made, and the product with the state that was reset in its third part."""
    for i in range(units):
        new = _tanh(given[at(2 * units + i)] + again[at(2 * units + i)], _one, _one)
        hidden[i] = (_one - again[i]) * new + again[i] * hidden[i]


@register_jitable
def _reset(given: Any, again: Any, hidden: Any, offset: Any, units: Any) -> None:
    """The update gate into the first part of `again`, the state that is reset into the second, bare offsets behind."""
    for i in range(units):
        again[i] = _sigmoid(given[i] + again[i], _one, _one)
        reset = _sigmoid(given[at(units + i)] + again[at(units + i)], _one, _one)
        again[at(units + i)] = reset * hidden[i]
        again[at(2 * units + i)] = offset[at(2 * units + i)]


@register_jitable
def _round(states: Any, out: Any) -> None:
    """States of several samples as the 256 numbers of the range that they have together."""
    low, high = np.float32(0), np.float32(0)
    for i in range(len(states)):
        low, high = min(low, states[at(i)]), max(high, states[at(i)])
    scale, zero_point = scale_of(low, high)
    round_all(states, scale, zero_point, out)


CELLS: dict[str, tuple[int, Callable[..., None]]] = {
    "lstm": (4, _lstm),
    "lstm_peepholes": (4, _lstm_peepholes),
    "rnn": (1, _rnn),
    "gru": (3, _gru),
    "gru_linear": (3, _gru_linear),
}
"""Number of gates, and what makes the new states of the two products.

``gru_linear``: the reset gate scales the product with the state; ``gru``: the state before it.
"""


@makes_kernels
def recurrent_kernel(cell: str, rounds: bool = False) -> Kernel:
    """A recurrent layer over all its steps, one or two directions.

    Parameters
    ----------
    cell
        A key of `CELLS`.
    rounds
        Whether states are rounded before they are multiplied, those of `group` samples by the range that they have.

    Returns
    -------
    Kernel
        Its fields are references: given (steps, n, directions, gates * units: the products with the data and their
        offsets), weights (directions, units, gates * units: the recurrence's), offset (directions, gates * units: the
        recurrence's), y (steps, directions, n, units), hidden and cell (directions, n, units: the first states, which
        become the last), peepholes (directions, `holes`), rounded (as the states, where these are rounded), work
        (directions, n, gates * units); and sizes. `holes` is how many peepholes a direction has.
        `group` samples go through the steps together. Direction number `backward` and those behind it go through the
        steps from the last one.
    """
    (gates, advance), resets = CELLS[cell], cell == "gru"

    def run(args, bases, thread, threads):
        steps, n, units, group = args.steps, args.n, args.units, args.group
        pitch = gates * units
        begin, end = share(args.directions * n // group, thread, threads)
        for part in range(begin, end):
            first, way = part * group, part * group // n
            weights = view(bases, args.weights + way * units * pitch * 4, units * pitch, np.float32)
            offset = view(bases, args.offset + way * pitch * 4, pitch, np.float32)
            peepholes = view(bases, args.peepholes + way * args.holes * 4, args.holes, np.float32)
            for step in range(steps):
                t = steps - 1 - step if way >= args.backward else step
                seen = args.hidden
                if rounds:
                    states, size = first * units * 4, group * units
                    seen = args.rounded
                    _round(
                        view(bases, args.hidden + states, size, np.float32),
                        view(bases, seen + states, size, np.float32),
                    )
                for item in range(first, first + group):
                    place = ((t * n + item % n) * args.directions + way) * pitch
                    given = view(bases, args.given + place * 4, pitch, np.float32)
                    again = view(bases, args.work + item * pitch * 4, pitch, np.float32)
                    hidden = view(bases, args.hidden + item * units * 4, units, np.float32)
                    for i in range(pitch):
                        again[i] = offset[i]
                    _add_product(
                        view(bases, seen + item * units * 4, units, np.float32), weights, units, pitch, 0, again
                    )
                    if resets:
                        _reset(given, again, hidden, offset, units)
                        _add_product(again[units : 2 * units], weights, units, pitch, 2 * units, again)
                    held = view(bases, args.cell + item * units * 4, units, np.float32)
                    advance(given, again, hidden, held, peepholes, units)
                    row = ((t * args.directions + way) * n + item % n) * units
                    y = view(bases, args.y + row * 4, units, np.float32)
                    for i in range(units):
                        y[i] = hidden[i]

    names = ("given", "weights", "offset", "y", "hidden", "cell", "peepholes", "rounded", "work")
    sizes = ("steps", "n", "units", "directions", "backward", "group", "holes")
    return Kernel(f"float.{cell}{'.rounded' * rounds}", record(**dict.fromkeys((*names, *sizes), "i8")), run)
