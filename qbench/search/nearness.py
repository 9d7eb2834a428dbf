"""How near a graph's outputs are to the float model's on a few samples: each output on its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from qbench.data.portions import Feeds
from qbench.errors import DataError
from qbench.evaluate.by_sample import by_sample
from qbench.evaluate.columns import Columns, samples_apart
from qbench.evaluate.detections import batchwise, worst_db
from qbench.evaluate.judging import Judging
from qbench.evaluate.layers import value_of
from qbench.evaluate.measure import LOST_DB, Deviation
from qbench.evaluate.picked import picked_from, picking
from qbench.ir.dtypes import is_float
from qbench.ir.graph import Graph
from qbench.ir.op import Array
from qbench.quant.arithmetic import reals
from qbench.runtime.programs import Programs

LOST_NATS = 0.015
"""Information about a choice between classes that may be lost where `LOST_DB` may be: what a perplexity grows by."""

_LOST_TEXTS = 0.05
"""The same of texts: of twenty, one is no longer read."""

_FEWEST, _MOST_OFFSET = 64, 10**1.5
"""Values in a sample whose mean is no signal: a detector says "nothing" nearly everywhere, by a large negative number,
beside which any error were small. But no output counts for less than this part of its mean square."""

_FAR_DB, _NEAR_DB = 0.0, 60.0
"""Of one sample: it says no more where nothing is left, or nothing lost."""


@dataclass(frozen=True, eq=False)
class Exact:
    """What the float model answers.

    Parameters
    ----------
    feeds
        Samples.
    outputs
        By name of each output of real numbers, and of what is picked from: its values in each sample.
    judging
        What the outputs are, beside numbers.
    picked
        Of each sample, what was picked by scores: other graphs go on with the same, so that outputs can be compared.
    power
        Of each output, the signal in a value of a usual sample, where that is known: where nothing is to be found,
        there is next to none, and any error large beside it.
    offsets
        Of each output with many values in a sample, their mean over all samples.
    """

    feeds: Sequence[Feeds]
    outputs: Mapping[str, Sequence[Array]]
    judging: Judging
    picked: Sequence[Feeds]
    power: Mapping[str, float] = field(default_factory=dict[str, float])
    offsets: Mapping[str, float] = field(default_factory=dict[str, float])
    _last: list[Programs] = field(default_factory=list[Programs], repr=False, compare=False)
    """Of the last graph that was judged: as long as they live, planning the next one finds again what it shares."""

    @property
    def texts(self) -> frozenset[str]:
        """The outputs that are read as texts."""
        return frozenset(name for name, made in self.judging.chances.items() if made.blank is not None)

    @classmethod
    def of(cls, graph: Graph, feeds: Sequence[Feeds]) -> Exact:
        """Run a float graph."""
        names = _judged(graph)
        picks = [name for node in picking(graph) for name in node.outputs]
        nothing = dict[str, Array]()
        found, _ = _outputs(graph, names, feeds, [nothing] * len(feeds), picks)
        answers = {name: found[name] for name in names}
        judging = Judging.of(graph, answers)
        picked = [{name: found[name][at] for name in picks} for at in range(len(feeds))]
        offsets = {name: _mean(arrays) for name, arrays in answers.items() if name not in judging.chances}
        return cls(feeds, answers, judging, picked, offsets=offsets)

    def loudest(self, among: Sequence[int], most: int) -> Exact:
        """Of the samples with these numbers so many at most, those that say most; noise counts by no less than what
        the signal is in an average one of all samples."""
        power = {name: self._says(name, arrays) for name, arrays in self.outputs.items()}

        def says(at: int) -> float:
            return sum(self._says(name, [arrays[at]]) / (power[name] or 1.0) for name, arrays in self.outputs.items())

        best = sorted(sorted(among, key=says, reverse=True)[:most])
        outputs = {name: [arrays[at] for at in best] for name, arrays in self.outputs.items()}
        feeds, picked = ([some[at] for at in best] for some in (self.feeds, self.picked))
        return Exact(feeds, outputs, self.judging, picked, power, self.offsets)

    def _says(self, name: str, arrays: Sequence[Array]) -> float:
        """How much an output says: the signal in a value of it, or how much it finds."""
        finder = self.judging.finds.joined.get(name)
        if finder is None:
            return self._signal(name, arrays) / max(1, sum(array.size for array in arrays))
        return math.fsum(finder.found(array).mean() for array in arrays) / len(arrays)

    def usual(self, graph: Graph) -> dict[str, float]:
        """The mean over samples of what `decibels` says of each alone, between 0 and 60.

        By few samples it tells better which of two graphs is nearer: what all together say hangs on the worst of them.
        """
        given, alone = self._given(graph), [[at] for at in range(len(self.feeds))]
        if given is None:
            return dict.fromkeys(self.outputs, _FAR_DB)
        each = {name: [self._decibels(name, at, given) for at in alone] for name in self.outputs}
        return {name: float(np.clip(ratios, _FAR_DB, _NEAR_DB).mean()) for name, ratios in each.items()}

    def decibels(self, graph: Graph) -> dict[str, float]:
        """SQNR of each output that another graph gives; minus infinity where NaN arises on the way.

        What all values of a large output have in common is no signal.
        A choice between classes counts by what is lost of it, where that is more: its divergence from the float
        model's in nats, over `LOST_NATS`, is put as the noise that leaves `LOST_DB`. A text counts by that alone: its
        letters may stand at other steps. Of detections counts what is said where something is found, of a few numbers
        how they vary, and their logarithms where they are exponentials, of vectors each beside itself as well. What is
        not finite in the float model, as a mask is, does not count.
        """
        given = self._given(graph)
        if given is None:
            return dict.fromkeys(self.outputs, -math.inf)
        return {name: self._decibels(name, range(len(self.feeds)), given) for name in self.outputs}

    def _given(self, graph: Graph) -> Mapping[str, Sequence[Array]] | None:
        """What another graph answers; None where NaN arises on the way."""
        try:
            found, programs = _outputs(graph, [*self.outputs], self.feeds, self.picked)
            self._last[:] = [programs]
            return found
        except DataError:
            return None

    def _decibels(self, name: str, samples: Sequence[int], given: Mapping[str, Sequence[Array]]) -> float:
        pairs = [(self.outputs[name][at], given[name][at]) for at in samples]
        finds, chances = self.judging.finds, self.judging.chances.get(name)
        powers, found = self.judging.powers.get(name), None
        if name in finds:
            each = [*batchwise(self.outputs, given)]
            found = worst_db(finds.deviations(name, *each[at]) for at in samples)
        elif powers:
            made, grown = sum((Columns.of(*pair) for pair in pairs), Columns()), self.judging.exponentials.get(name)
            found = worst_db([made.apart(powers) + (() if grown is None else grown.apart(pairs))])
        if name in finds or powers:
            return -math.inf if found is None else found
        signal, noise = self._signal(name, [wanted for wanted, _ in pairs]), math.fsum(_noise(*pair) for pair in pairs)
        signal = max(signal, self.power.get(name, 0.0) * sum(wanted.size for wanted, _ in pairs))
        ratio = -math.inf if not math.isfinite(noise) else _decibels(signal, noise)
        if name in self.judging.vectors and ratio > -math.inf:
            apart = sum((samples_apart(*pair) for pair in pairs), Deviation())
            return min(ratio, _decibels(apart.signal, apart.noise))
        if chances is None or ratio == -math.inf:
            return ratio
        lost, rows = (math.fsum(sums) for sums in zip(*(chances.lost(*pair) for pair in pairs), strict=True))
        reads = chances.blank is not None
        kept = LOST_DB + _decibels((_LOST_TEXTS if reads else LOST_NATS) * rows, lost)
        return kept if reads else min(ratio, kept)

    def _signal(self, name: str, arrays: Sequence[Array]) -> float:
        """The sum of the squares of an output's values, less what they have in common."""
        offsets = self.offsets.get(name, 0.0), 0.0
        signal, power = (math.fsum(_power(array, offset) for array in arrays) for offset in offsets)
        return max(signal, power / _MOST_OFFSET)


def _outputs(
    graph: Graph, names: Sequence[str], feeds: Sequence[Feeds], picked: Sequence[Feeds], picks: Sequence[str] = ()
) -> tuple[dict[str, list[Array]], Programs]:
    values = {name: value_of(graph, name) or name for name in (*names, *picks)}
    programs = Programs(graph, keep=values.values())
    runs = [
        programs.of(feed).run(feed, start=given, keep=values.values())
        for feed, given in zip(feeds, picked, strict=True)
    ]
    found = {name: [reals(run[value], graph.qparams.get(value)) for run in runs] for name, value in values.items()}
    for name in (name for name in names if name not in picks):
        found[name] = [by_sample(graph, values[name], array) for array in found[name]]
    return found, programs


def _judged(graph: Graph) -> list[str]:
    """The outputs of real numbers, and what is picked from in place of what is picked."""
    picks = {name for node in picking(graph) for name in node.outputs}
    named = dict.fromkeys((*(name for name in graph.outputs if name not in picks), *picked_from(graph)))
    return [name for name in named if is_float(graph.types[name].dtype)]


def _mean(arrays: Sequence[Array]) -> float:
    """Of the finite values; 0 where a sample has few."""
    real = np.concatenate([array[np.isfinite(array)].ravel() for array in arrays])
    return float(real.mean(dtype=np.float64)) if real.size >= _FEWEST * len(arrays) else 0.0


def _power(array: Array, offset: float = 0.0) -> float:
    """The sum of the squares of the finite values about an offset."""
    return float(np.square(array[np.isfinite(array)].astype(np.float64) - offset).sum())


def _noise(wanted: Array, given: Array) -> float:
    """The sum of the squares of what is wrong, where it should be finite."""
    finite = np.isfinite(wanted)
    return float(np.square(wanted[finite].astype(np.float64) - given[finite]).sum())


def _decibels(signal: float, noise: float) -> float:
    return math.inf if noise <= 0 else 10 * math.log10(signal / noise) if signal > 0 else -math.inf
