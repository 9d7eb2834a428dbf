"""Recurrent layers, states in float32: the product with the state, the gates, and the states that go round.

The product with the data waits for no state, so it is made for all steps ahead.
"""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from qbench.kernels.by_range import round_all, scale_of
from qbench.kernels.floats.denormals import without_denormals
from qbench.kernels.floats.functions import FUNCTIONS
from qbench.kernels.floats.product import product_of
from qbench.kernels.floats.stored_product import stored_product_of
from qbench.kernels.jit import register_jitable
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import view
from qbench.kernels.split import at, share
from qbench.kernels.tile import Tile

_one, _sigmoid, _tanh = np.float32(1), FUNCTIONS["sigmoid"], FUNCTIONS["tanh"]


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
    """`again` holds what `_reset` made, and in its third part the product with the state that was reset."""
    for i in range(units):
        new = _tanh(given[at(2 * units + i)] + again[at(2 * units + i)], _one, _one)
        hidden[i] = (_one - again[i]) * new + again[i] * hidden[i]


@register_jitable
def _reset(given: Any, again: Any, hidden: Any, units: Any) -> None:
    """The update gate into the first part of `again`, the state that is reset into the second."""
    for i in range(units):
        again[i] = _sigmoid(given[i] + again[i], _one, _one)
        reset = _sigmoid(given[at(units + i)] + again[at(units + i)], _one, _one)
        again[at(units + i)] = reset * hidden[i]


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


RESETS = "gru"
"""The cell that multiplies its last gate's weights with a state which the other gates have changed."""


Product = Literal["", "rounded", "stored"]
"""What states are multiplied by, and as what: real weights, or weights of 8 bits; real numbers, or those of all samples
rounded by the range that they have."""


@makes_kernels
def recurrent_kernel(level: Level, tile: Tile, cell: str, product: Product = "") -> Kernel:
    """A recurrent layer over all its steps, one or two directions.

    Parameters
    ----------
    level, tile
        Of the products.
    cell
        A key of `CELLS`.
    product
        With the state.

    Returns
    -------
    Kernel
        Its fields are references: given (steps, n, directions, gates * units: the products with the data and their
        offsets), weights and offset (of each direction, the recurrence's, as `product_of` or `stored_product_of` have
        them; late_weights and late_offset those of the last gate of a cell that `RESETS`), y (steps, directions, n,
        units), hidden and cell (directions, n, units: the first states, which become the last), peepholes (directions,
        `holes`), rounded (of each state what it is rounded to, `rounded_bytes` of it, where it is), work (directions,
        n, gates * units); and sizes: `holes` is how many peepholes a direction has, the fields that end in bytes say
        how far it is from one direction, or state, to the next. Direction number `backward` and those behind it go
        through the steps from the last one.
    """
    (gates, advance), resets = CELLS[cell], cell == RESETS
    rounds, multiply = product == "rounded", _with_parts(product_of(level, tile))
    if product == "stored":
        multiply = stored_product_of(level, tile)

    def run(args, bases, thread, threads):
        steps, n, units = args.steps, args.n, args.units
        pitch = gates * units
        begin, end = share(args.directions * n, thread, threads, n if rounds else 1)
        for way in range(args.directions):
            first, last = max(begin, way * n), min(end, (way + 1) * n)
            if first >= last:
                continue
            weights, offset = args.weights + way * args.weight_bytes, args.offset + way * args.offset_bytes
            late_weights = args.late_weights + way * args.late_weight_bytes
            late_offset = args.late_offset + way * args.late_offset_bytes
            peepholes = view(bases, args.peepholes + way * args.holes * 4, args.holes, np.float32)
            states, sums, row, size = first * units * 4, args.work + first * pitch * 4, units * 4, pitch * 4
            rounded = args.rounded + first * args.rounded_bytes
            seen = rounded if rounds else args.hidden + states
            for step in range(steps):
                t = steps - 1 - step if way >= args.backward else step
                if rounds:
                    count = (last - first) * units
                    _round(view(bases, args.hidden + states, count, np.float32), view(bases, seen, count, np.float32))
                early = (gates - resets) * units
                multiply(bases, seen, row, weights, offset, sums, size, last - first, units, early, rounded)
                if resets:
                    for item in range(first, last):
                        given = view(bases, args.given + _place(args, item, t, way) * size, pitch, np.float32)
                        again = view(bases, args.work + item * size, pitch, np.float32)
                        _reset(given, again, view(bases, args.hidden + item * row, units, np.float32), units)
                    multiply(
                        bases, sums + row, size, late_weights, late_offset, sums + 2 * row, size, last - first, units,
                        units, rounded,
                    )  # fmt: skip
                for item in range(first, last):
                    given = view(bases, args.given + _place(args, item, t, way) * size, pitch, np.float32)
                    again = view(bases, args.work + item * size, pitch, np.float32)
                    hidden = view(bases, args.hidden + item * row, units, np.float32)
                    held = view(bases, args.cell + item * row, units, np.float32)
                    advance(given, again, hidden, held, peepholes, units)
                    y = view(bases, args.y + ((t * args.directions + way) * n + item % n) * row, units, np.float32)
                    for i in range(units):
                        y[i] = hidden[i]

    names = ("given", "weights", "offset", "late_weights", "late_offset", "y", "hidden", "cell", "peepholes")
    sizes = ("steps", "n", "units", "directions", "backward", "holes")
    strides = ("weight_bytes", "offset_bytes", "late_weight_bytes", "late_offset_bytes", "rounded_bytes")
    fields = record(**dict.fromkeys((*names, "rounded", "work", *sizes, *strides), "i8"))
    return Kernel(
        f"float.{cell}{product and '.'}{product}.{level}.{tile}",
        fields,
        run if level == Level.PORTABLE else without_denormals(run),
    )


def _with_parts(multiply: Callable[..., None]) -> Callable[..., None]:
    """With one argument more, as `stored_product_of` has it."""

    @register_jitable
    def real(bases, x, x_pitch, weights, bias, out, out_pitch, rows, depth, columns, parts):
        multiply(bases, x, x_pitch, weights, bias, out, out_pitch, rows, depth, columns)

    return real


@register_jitable
def _place(args: Any, item: Any, t: Any, way: Any) -> Any:
    """Which row of `given` is that of a sample at a time step."""
    return (t * args.n + item % args.n) * args.directions + way
