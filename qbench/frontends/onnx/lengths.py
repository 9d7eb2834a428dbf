"""Sequences of different lengths in one batch, as recurrent layers of ONNX take them: each ends, or begins, where its
own length says, and is 0 behind that."""

from collections.abc import Sequence

import numpy as np

from qbench.frontends.onnx.builder import Builder, Value
from qbench.ir.graph import Attr


def by_length(
    builder: Builder,
    op: str,
    operands: Sequence[Value],
    lengths: Value,
    outputs: int,
    attrs: dict[str, Attr],
) -> tuple[Value, Value]:
    """All states of a layer, and the last one of each sequence.

    Parameters
    ----------
    op
        A recurrent op.
    operands
        What it reads: data [steps, batch, features], and what has its directions along axis 0.
    lengths
        Of each sequence.
    outputs
        How many the op has.
    attrs
        Of the op.

    Returns
    -------
    tuple
        [steps, directions, batch, units] and [directions, batch, units].
    """
    x, *others = operands
    ends = _Ends(builder, x.shape[0], lengths)
    every, last = list[Value](), list[Value]()
    for number in range(others[0].size(0)):
        back = attrs["direction"] == "reverse" or number == 1
        given = [_direction(builder, value, number) for value in others]
        data = ends.turned(x) if back else x
        found, *_ = builder.emit_many(f"nn.{op}", (data, *given), outputs, **attrs | {"direction": "forward"})
        states = builder.emit("squeeze", found, axes=(1,))
        last.append(ends.last(states))
        states = ends.cut(ends.turned(states) if back else states)
        every.append(builder.emit("expand_dims", states, axes=(1,)))
    if len(every) == 1:
        return every[0], last[0]
    return builder.emit("concatenate", *every, axis=1), builder.emit("concatenate", *last, axis=0)


def _direction(builder: Builder, value: Value, number: int) -> Value:
    if value.size(0) == 1:
        return value
    if value.constant is not None:
        return Value.known(builder.fresh(f"{value.name}.{number}"), value.constant[number : number + 1])
    return builder.emit_many("split", (value,), 2, cuts=(1,), axis=0)[number]


class _Ends:
    """Where each sequence of a batch ends; values are [steps, batch, features]."""

    def __init__(self, builder: Builder, steps: int | str, lengths: Value) -> None:
        self._builder = emit = builder
        step = emit.emit("expand_dims", emit.emit("arange", stop=steps), axes=(1,))
        length = emit.emit("expand_dims", emit.emit("cast", lengths, dtype="int64"), axes=(0,))
        self._inside = emit.emit("less", step, length)
        self._end = emit.emit("maximum", emit.emit("subtract", length, np.asarray(1)), np.asarray(0))
        self._back = emit.emit("where", self._inside, emit.emit("subtract", self._end, step), step)

    def turned(self, value: Value) -> Value:
        """Each sequence backwards; what is behind it stays."""
        return self._picked(value, self._back)

    def last(self, value: Value) -> Value:
        """The last step of each."""
        return self._picked(value, self._end)

    def cut(self, value: Value) -> Value:
        """Zeros behind each."""
        inside = self._builder.emit("expand_dims", self._inside, axes=(2,))
        return self._builder.emit("where", inside, value, np.zeros((), value.dtype))

    def _picked(self, value: Value, steps: Value) -> Value:
        steps = self._builder.emit("expand_dims", steps, axes=(2,))
        steps = self._builder.emit("broadcast_to", steps, shape=(*steps.shape[:2], value.shape[2]))
        return self._builder.emit("take_along_axis", value, steps, axis=0)
