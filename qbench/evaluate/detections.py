"""Outputs that say what is where: at each of many places some numbers, and how likely it is that they mean anything.

Detectors give a box for every place of the image, and nobody looks at one where nothing was found: its numbers are
whatever training left there, and errors in them harm nothing. So errors count by how likely something is found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from qbench.ir.graph import Graph
from qbench.ir.op import OPS, Array, QuantRule, is_op
from qbench.ops.float.activation import Sigmoid
from qbench.ops.float.select import Concatenate

_FEWEST = 4
"""Numbers that a place has besides chances: those of a box."""
_TOGETHER = 0.5
"""Of a chance that says whether there is anything at all: what the others are there where it is high, at least."""

Sums = tuple[float, float]
"""Of squares: of the signal, and of what is wrong with it."""


@dataclass(frozen=True)
class Detections:
    """Where an output has chances.

    Parameters
    ----------
    axis
        Along which the numbers of one place lie.
    chances
        First and last but one of those that are chances.
    is_found
        Whether the first of them says how likely there is anything, and the others what it then is.
    """

    axis: int
    chances: tuple[int, int]
    is_found: bool = False

    @classmethod
    def seen_in(cls, outputs: Sequence[Array]) -> Detections | None:
        """What a model that answered these to some samples tells: chances are between 0 and 1 at every place, other
        numbers are not. None where there are none, or too few besides."""
        rank = outputs[0].ndim
        for axis in sorted(range(1, rank), key=lambda axis: outputs[0].shape[axis]):
            if len({array.shape[axis] for array in outputs}) > 1:
                continue
            places = tuple(other for other in range(rank) if other != axis)
            within = np.all([((array >= 0) & (array <= 1)).all(axis=places) for array in outputs], axis=0)
            chances = np.flatnonzero(within)
            side_by_side = chances.size and chances[-1] - chances[0] == chances.size - 1
            if side_by_side and within.size - chances.size >= _FEWEST:
                found = cls(axis, (int(chances[0]), int(chances[-1]) + 1))
                return cls(found.axis, found.chances, found._says_whether(outputs))
        return None

    def _says_whether(self, outputs: Sequence[Array]) -> bool:
        """Whether the other chances are high where the first one is: classes exclude each other."""
        chances = np.concatenate([self._chances(array).reshape(-1, np.diff(self.chances)[0]) for array in outputs])
        first = chances[:, 0]
        if chances.shape[1] < 2 or not first.any():
            return False
        return float((first**2 * chances[:, 1:].max(axis=1)).sum() / (first**2).sum()) >= _TOGETHER

    def found(self, output: Array) -> NDArray[np.float64]:
        """How likely something is found at each place."""
        chances = self._chances(output)
        return chances[..., 0] * chances[..., 1:].max(axis=-1) if self.is_found else chances.max(axis=-1)

    def sums(self, wanted: Array, given: Array) -> tuple[Sums, Sums]:
        """Of the chances, and of the other numbers, where either of two models finds something."""
        if not np.isfinite(given).all():
            return (1.0, np.inf), (1.0, np.inf)
        weights = np.maximum(self.found(wanted), self.found(given))[..., np.newaxis]

        def of(one: NDArray[np.float64], other: NDArray[np.float64]) -> Sums:
            return float((weights * one**2).sum()), float((weights * (one - other) ** 2).sum())

        return of(*map(self._chances, (wanted, given))), of(*map(self._others, (wanted, given)))

    def _chances(self, output: Array) -> NDArray[np.float64]:
        return np.moveaxis(output, self.axis, -1)[..., slice(*self.chances)].astype(np.float64)

    def _others(self, output: Array) -> NDArray[np.float64]:
        return np.delete(np.moveaxis(output, self.axis, -1), slice(*self.chances), axis=-1).astype(np.float64)


def may_detect(graph: Graph, value: str) -> bool:
    """Whether an output joins chances to other numbers: results of a sigmoid to what is none."""
    made = [is_op(node, Sigmoid) if (node := graph.producers.get(name)) else False for name in _sources(graph, value)]
    return any(made) and not all(made)


def _sources(graph: Graph, value: str) -> Iterator[str]:
    """The values that one is joined of, however they were moved."""
    made = graph.producers.get(value)
    if made is None or not (OPS[made.op].rule is QuantRule.SAME or is_op(made, Concatenate)):
        yield value
        return
    for name in made.inputs if is_op(made, Concatenate) else made.inputs[:1]:
        yield from _sources(graph, name)
