"""Outputs that are exponentials of what a network tells, as prices are whose logarithms it was taught: over decades.

An error of a hundred is next to nothing beside a price of a million, and all of one of fifty. So the error of each
number counts beside the number itself: the difference of their logarithms, beside how these vary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qbench.evaluate.columns import Columns, powers_of
from qbench.evaluate.measure import Deviation
from qbench.ir.graph import Graph, Node
from qbench.ir.op import OPS, Array, QuantRule, is_op
from qbench.ops.float.elementwise import Add, Divide, Multiply, Power, Subtract
from qbench.ops.float.unary import Exp

_LEAST = 2.0**-10
"""What is less than this part of what it should be, or below 0, counts as this part."""


@dataclass(frozen=True)
class Exponential:
    """How the logarithms follow from an output.

    Parameters
    ----------
    offset
        What was added to the exponentials: -1 for ``exp(x) - 1``.
    powers
        The signal of each logarithm, as `Columns.power` gives it; none where that is not known.
    """

    offset: float
    powers: Sequence[float] = ()

    def seen_in(self, outputs: Sequence[Array]) -> Exponential:
        """With the signal of what a model answered to some samples, where these tell it."""
        with np.errstate(divide="ignore", invalid="ignore"):  # of 0 and below: then nothing is told
            logarithms = [np.log(array.astype(np.float64) - self.offset) for array in outputs]
        return replace(self, powers=powers_of(logarithms))

    def columns(self, wanted: Array, given: Array) -> Columns:
        """Sums over the logarithms of what two models answer to some samples."""
        real, other = (array.astype(np.float64) - self.offset for array in (wanted, given))
        with np.errstate(divide="ignore", invalid="ignore"):
            return Columns.of(np.log(real), np.log(np.maximum(other, _LEAST * real)))

    def apart(self, pairs: Iterable[tuple[Array, Array]]) -> tuple[Deviation, ...]:
        """Signal and noise of the logarithms of what two models answer, where it is known how they vary."""
        return sum((self.columns(*pair) for pair in pairs), Columns()).apart(self.powers) if any(self.powers) else ()


def exponential_of(graph: Graph, value: str) -> Exponential | None:
    """How logarithms follow from an output; None where it is no exponential.

    It is one where data is an exponent, and then only moved, multiplied by constants, or a number added to it.
    """
    scale, offset = 1.0, 0.0
    while (made := graph.producers.get(value)) is not None:
        if is_op(made, Exp) or (is_op(made, Power) and made.inputs[0] in graph.constants):
            return Exponential(offset) if np.isfinite(offset) else None
        if OPS[made.op].rule == QuantRule.SAME:
            value = made.inputs[0]
            continue
        constant = _constant(graph, made)
        if constant is None:
            return None
        at, number = constant
        value = made.inputs[1 - at]
        if is_op(made, Multiply):
            scale *= number
        elif is_op(made, Divide) and at == 1:
            scale /= number
        elif is_op(made, Add) or (is_op(made, Subtract) and at == 1):
            offset += scale * (number if is_op(made, Add) else -number)
        else:
            return None
    return None


def _constant(graph: Graph, made: Node) -> tuple[int, float] | None:
    """Which of two operands is a constant, and the number that it is: NaN where it is many."""
    at = [at for at, name in enumerate(made.inputs) if name in graph.constants]
    if len(made.inputs) != 2 or len(at) != 1:
        return None
    array = graph.constants[made.inputs[at[0]]].array
    return at[0], float(array.reshape(-1)[0]) if array.size == 1 else float("nan")
