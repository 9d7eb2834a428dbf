"""Outputs that say what is where: at each of many places some numbers, and how likely it is that they mean anything.

Detectors give a box for every place of the image, and nobody looks at one where nothing was found: its numbers are
whatever training left there, and errors in them harm nothing. So errors count by how likely something is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from qbench.evaluate.chances import chances_of
from qbench.evaluate.measure import Deviation, deviation
from qbench.ir.graph import Graph
from qbench.ir.op import OPS, Array, QuantRule, is_op
from qbench.ops.float.activation import Sigmoid
from qbench.ops.float.select import Concatenate

_FEWEST = 4
"""Numbers that a place has besides chances: those of a box."""
_TIMES_IN_SCORES = 2.0
"""So many times the noise will do in scores, by which what is found is ordered."""
_TOGETHER = 0.5
"""Of a chance that says whether there is anything at all: what the others are there where it is high, at least."""


@dataclass(frozen=True)
class Detections:
    """Where an output has chances.

    Parameters
    ----------
    axis
        Along which the numbers of one place lie.
    chances
        The first of them that is a chance, and the first behind those.
    says_whether
        Whether the first of them says how likely there is anything, and the others what it then is.
    """

    axis: int
    chances: tuple[int, int]
    says_whether: bool = False

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
                return replace(found, says_whether=found._are_together(outputs))
        return None

    def _are_together(self, outputs: Sequence[Array]) -> bool:
        """Whether the other chances are high where the first one is, while classes exclude each other."""
        first, last = self.chances
        chances = np.concatenate([self._chances(array).reshape(-1, last - first) for array in outputs])
        weights = chances[:, 0] ** 2
        if last - first < 2 or not weights.any():
            return False
        return float(np.average(chances[:, 1:].max(axis=1), weights=weights)) >= _TOGETHER

    def found(self, output: Array) -> NDArray[np.float64]:
        """How likely something is found at each place."""
        chances = self._chances(output)
        most = chances[..., int(self.says_whether) :].max(axis=-1).astype(np.float64)
        return chances[..., 0] * most if self.says_whether else most

    def deviations(self, wanted: Array, given: Array) -> tuple[Deviation, Deviation]:
        """Of the chances, and of the other numbers, where either of two models finds something."""
        weights = self.weights(wanted, given)
        chances, others = ([part(array) for array in (wanted, given)] for part in (self._chances, self._others))
        return _weighted(chances[0], chances[1], weights), _weighted(others[0], others[1], weights)

    def weights(self, wanted: Array, given: Array) -> NDArray[np.float64]:
        """How likely either of two models finds something at each place."""
        return np.maximum(self.found(wanted), self.found(given))

    def _chances(self, output: Array) -> Array:
        return np.moveaxis(output, self.axis, -1)[..., slice(*self.chances)]

    def _others(self, output: Array) -> Array:
        return np.delete(np.moveaxis(output, self.axis, -1), slice(*self.chances), axis=-1)


@dataclass(frozen=True)
class Beside:
    """An output without chances, whose places are those of another one that has nothing else.

    Parameters
    ----------
    finder
        Name of that one.
    detections
        How it says so.
    """

    finder: str
    detections: Detections

    def deviation(self, wanted: Array, given: Array, weights: NDArray[np.float64]) -> Deviation:
        """Of its numbers, weighted by what the finder finds."""
        one, other = (np.moveaxis(array, self.detections.axis, -1) for array in (wanted, given))
        return _weighted(one, other, weights)


@dataclass(frozen=True)
class Finds:
    """Which of a network's outputs say what is where.

    Parameters
    ----------
    joined
        Of those that join chances to other numbers: which numbers are chances.
    beside
        Of those that say more of what another one finds: which one.
    """

    joined: Mapping[str, Detections]
    beside: Mapping[str, Beside]

    @classmethod
    def of(cls, graph: Graph, outputs: Mapping[str, Sequence[Array]]) -> Finds:
        """Those of a float graph, by what some outputs were for some samples."""
        made = {name: _of_sigmoids(graph, name) for name in outputs if chances_of(graph, name) is None}
        seen = {name: Detections.seen_in(outputs[name]) for name, some in made.items() if any(some) and not all(some)}
        finders = {name: outputs[name] for name, some in made.items() if all(some)}
        others = {name: _beside(outputs[name], finders) for name, some in made.items() if not any(some)}
        return cls(
            {name: found for name, found in seen.items() if found is not None},
            {name: found for name, found in others.items() if found is not None},
        )

    def __contains__(self, name: str) -> bool:
        return name in self.joined or name in self.beside

    def deviations(self, name: str, wanted: Mapping[str, Array], given: Mapping[str, Array]) -> tuple[Deviation, ...]:
        """How far an output of some samples is from what it should be: of detections, and of what is beside them, as
        far as something is found. They add up over samples, and the worst counts.

        Scores order what is found: 3 dB less will do of them, and their noise is halved.
        """
        if name in self.joined:
            scores, boxes = self.joined[name].deviations(wanted[name], given[name])
            return replace(scores, noise=scores.noise / _TIMES_IN_SCORES), boxes
        if (beside := self.beside.get(name)) is None:
            return (deviation(wanted[name], given[name]),)
        weights = beside.detections.weights(wanted[beside.finder], given[beside.finder])
        return (beside.deviation(wanted[name], given[name], weights),)


def _weighted(wanted: Array, given: Array, weights: NDArray[np.float64]) -> Deviation:
    """Sums of squares along the last axis, times the weight of each place."""
    wrong = np.subtract(wanted, given, dtype=np.float64)
    signal, noise = (np.einsum("...i,...i->...", each, each, dtype=np.float64) for each in (wanted, wrong))
    return Deviation(float((weights * signal).sum()), float((weights * noise).sum()), count=wanted.size)


def batchwise(*models: Mapping[str, Sequence[Array]]) -> Iterator[tuple[Mapping[str, Array], ...]]:
    """What several models answered, as lists over batches by name: batch by batch."""
    each = ([dict(zip(some, row, strict=True)) for row in zip(*some.values(), strict=True)] for some in models)
    return zip(*each, strict=True)


def worst_db(deviations: Iterable[Sequence[Deviation]]) -> float | None:
    """The lowest SQNR in dB of what adds up over samples; None where one is no number, or there is none."""
    ratios = [reduce(add, column).sqnr_db for column in zip(*deviations, strict=True)]
    return min((ratio for ratio in ratios if ratio is not None), default=None) if None not in ratios else None


def _beside(own: Sequence[Array], finders: Mapping[str, Sequence[Array]]) -> Beside | None:
    """What an output stands beside: one of chances alone, of as many places, which are all axes but one."""
    shapes, rank = [array.shape for array in own], own[0].ndim
    if rank < 3:
        return None
    for name, arrays in finders.items():
        others = [array.shape for array in arrays]
        axes = [axis for axis in (rank - 1, 1) if _places(shapes, axis) == _places(others, axis)]
        if axes:
            return Beside(name, Detections(axes[0], (0, others[0][axes[0]])))
    return None


def _places(shapes: Sequence[tuple[int, ...]], axis: int) -> list[tuple[int, ...]]:
    return [(len(shape), *shape[:axis], *shape[axis + 1 :]) for shape in shapes]


def is_of_chances(graph: Graph, value: str) -> bool:
    """Whether a sigmoid made something of what a value is joined of."""
    return any(_of_sigmoids(graph, value))


def _of_sigmoids(graph: Graph, value: str) -> list[bool]:
    """Of all that a value is joined of: whether a sigmoid made it."""
    makers = (graph.producers.get(name) for name in _sources(graph, value))
    return [maker is not None and is_op(maker, Sigmoid) for maker in makers]


def _sources(graph: Graph, value: str) -> Iterator[str]:
    """The values that one is joined of, however they were moved."""
    made = graph.producers.get(value)
    if made is None or not (OPS[made.op].rule is QuantRule.SAME or is_op(made, Concatenate)):
        yield value
        return
    for name in made.inputs if is_op(made, Concatenate) else made.inputs[:1]:
        yield from _sources(graph, name)
