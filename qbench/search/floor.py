"""Layers that stay in float so that no output is spoiled: measured on data that the ranges were not chosen on.

What 8 bits keep of single tensors does not tell what a deep network loses, nor what becomes of an output of its own
scale, of weights, or of states that leave the range which they had at first. So each output is measured; where one is
spoiled, the errors of stretches of the network are measured alone, and those with most error for their time are left
in float until all outputs are good. Errors add up about as powers do, which is why few trials do.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise

from qbench.calibration.collect import observed
from qbench.data.dataset import Dataset
from qbench.errors import Cancelled
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph
from qbench.ops.products import macs
from qbench.passes.choices import choices_of
from qbench.passes.groups import find_groups
from qbench.passes.norm_parts import norm_parts
from qbench.passes.pipeline import Trace
from qbench.progress import Cancel, Progress
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import Quantized, quantize_graph
from qbench.search.cost import effort
from qbench.search.nearness import LOST_DB, Exact
from qbench.search.sides import Side, sides_of

FLOOR_DB = LOST_DB
"""What no output may be below: an error of a tenth, which moves few decisions; of a choice, what `Exact` says."""

_GOAL_DB, _UNSURE_DB, _SURE = 23.0, 3.0, 8
"""What an output is brought to that was below: other data lose more than what was measured. So much more where half as
many samples are judged on, or fewer."""

_TRIALS, _FEWEST_TRIALS = 44, 8
_MOST_MACS, _MANY_MACS = 3 << 35, 1 << 32
"""Of all trials together: of large models fewer stretches are told apart; and of a sample, where one side will do."""
_FIRST, _TOLD_APART = 6, 0.4
"""Stretches at first; and the share of all trials that is spent on telling them apart."""
_FAR = 1.5
"""Errors add up about as powers do: where those of two stretches are so far over what is allowed, no trial is spent."""
_SHARES = (1.0, 0.5, 0.25, 0.1, 0.03, 0.0)
"""Of the error that is allowed: the next one where errors together were more than the sum of each alone."""
_WORST, _LEAST_SAVED = 1e10, 1e-3

Noise = Mapping[str, float]
"""Error over signal, by output."""


@dataclass(frozen=True, eq=False)
class _Stretch:
    """Fused groups that follow each other, by their nodes' names; what they alone cost, and what time they save."""

    groups: Sequence[Sequence[str]]
    noise: Noise
    saved: float


def kept_in_float(config: QuantConfig, graph: Graph, floats: Mapping[str, str]) -> QuantConfig:
    """The config with nodes in float, each with the reason, but for those of which it says something itself."""
    choices = choices_of(graph, config)
    decided = {*choices.included, *choices.excluded}
    for reason in dict.fromkeys(floats.values()):
        names = [name for name, why in floats.items() if why == reason and name not in decided]
        config = config.override_many("layers", names, keep_float=True, reason=reason)
    return config


def measure_floats(
    prepared: Trace,
    config: QuantConfig,
    data: Dataset,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    executor: Executor | None = None,
) -> FrozenMap[str, str]:
    """The nodes that stay in float beside those that the config keeps there, each with the reason.

    Parameters
    ----------
    prepared, config
        As for :func:`~qbench.quantize.quantized.quantize_graph`.
    data
        Its samples are divided as :func:`~qbench.search.sides.sides_of` does.
    progress
        Told the trials done, and how many there are at most.
    cancel, executor
        To stop it, and where ranges are taken.

    Raises
    ------
    Cancelled
        `cancel` was set.
    """
    graph = prepared.graph
    work = max(1, sum(macs(graph, node) for node in graph.nodes))
    few, both = min(_SURE, max(1, _MOST_MACS // (work * _TRIALS))), work < _MANY_MACS
    sides = sides_of(graph, data, _ends(graph, config), few, both, executor, cancel)
    trials = max(_FEWEST_TRIALS, min(_TRIALS, _MOST_MACS // (work * few)))
    return _Trials(prepared, sides, trials, progress, cancel).floats(config)


class _Trials:
    """Configs measured one after the other, a bounded number of them."""

    def __init__(
        self, prepared: Trace, sides: list[Side], most: int, progress: Progress | None, cancel: Cancel | None
    ) -> None:
        self._prepared, self._sides, self._most, self._done = prepared, sides, most, 0
        self._progress, self._cancel = progress, cancel
        halvings = math.log2(_SURE / min(len(side.all.feeds) for side in sides))
        self._allowed = 10 ** (-(_GOAL_DB + _UNSURE_DB * min(max(halvings, 0.0), 1.0)) / 10)

    def floats(self, config: QuantConfig) -> FrozenMap[str, str]:
        """The nodes to keep in float."""
        tried = [self._tried(config, (), side, side.all) for side in self._sides]
        quantized, noise = tried[0][0], _worst(noise for _, noise in tried)
        if max(noise.values(), default=0.0) <= 10 ** (-FLOOR_DB / 10):
            return FrozenMap()
        worst = max(noise, key=noise.__getitem__)
        decibels = "no number" if noise[worst] >= _WORST else f"{-10 * math.log10(noise[worst]):.0f} dB"
        reason = f"default: in 8 bits they leave {decibels} of output {worst!r}, less than {FLOOR_DB:g}"
        if max(tried[-1][1].values()) > max(tried[0][1].values()):
            self._sides.reverse()
        stretches = self._told_apart(config, _integer_groups(quantized))
        kept: Sequence[_Stretch] = ()
        for share in _SHARES:
            more = _chosen(stretches, share * self._allowed) if share else stretches
            if len(more) > len(kept):
                kept = more
                left = self._noise(config, kept)
                if not self._spoils(left):
                    return FrozenMap(dict.fromkeys(_nodes(self._needed(config, kept, left)), reason))
        return FrozenMap(dict.fromkeys(_nodes(kept), reason))

    def _needed(self, config: QuantConfig, kept: Sequence[_Stretch], noise: Noise) -> Sequence[_Stretch]:
        """Those without which the outputs are not good, as far as trials are left: the dearest are asked first."""
        for stretch in sorted(kept, key=lambda stretch: -stretch.saved):
            fewer = [other for other in kept if other is not stretch]
            both = {name: noise[name] + stretch.noise[name] for name in noise}
            if self._done < self._most and fewer and not self._spoils(both, _FAR):
                found = self._noise(config, fewer)
                if not self._spoils(found):
                    kept, noise = fewer, found
        return kept

    def _told_apart(self, config: QuantConfig, groups: Sequence[Sequence[str]]) -> list[_Stretch]:
        """Stretches that cover the groups, each measured alone, on the side where 8 bits spoil most: short ones where
        much time is at stake."""
        every, side = [name for group in groups for name in group], self._sides[0]
        longest = effort(self._quantized(config, every, side).graph)

        def alone(part: Sequence[Sequence[str]]) -> _Stretch:
            own = {name for group in part for name in group}
            quantized, noise = self._tried(config, [name for name in every if name not in own], side, side.few)
            return _Stretch(part, noise, max(longest - effort(quantized.graph), _LEAST_SAVED * longest))

        found = [alone(part) for part in _cut(groups, _FIRST)]
        while self._done < self._most * _TOLD_APART:
            long = [stretch for stretch in _chosen(found, self._allowed) if len(stretch.groups) > 1]
            if not long:
                break
            at = found.index(max(long, key=lambda stretch: stretch.saved))
            found[at : at + 1] = [alone(part) for part in _cut(found[at].groups, 2)]
        return found

    def _noise(self, config: QuantConfig, kept: Sequence[_Stretch]) -> Noise:
        """What is left with these in float, of all sides the most; of the first that is spoiled, where one is."""
        found = list[Noise]()
        for side in self._sides:
            found.append(self._tried(config, _nodes(kept), side, side.all)[1])
            if self._spoils(found[-1]):
                break
        return _worst(found)

    def _spoils(self, noise: Noise, times: float = 1.0) -> bool:
        return max(noise.values(), default=0.0) > times * self._allowed

    def _tried(self, config: QuantConfig, floats: Iterable[str], side: Side, exact: Exact) -> tuple[Quantized, Noise]:
        quantized = self._quantized(config, floats, side)
        decibels = exact.decibels(quantized.graph)
        self._done += 1
        if self._progress is not None and self._done > len(self._sides):  # most models need one trial of each
            self._progress(min(self._done, self._most), self._most)
        return quantized, {name: min(10 ** (-found / 10), _WORST) for name, found in decibels.items()}

    def _quantized(self, config: QuantConfig, floats: Iterable[str], side: Side) -> Quantized:
        if self._cancel is not None and self._cancel.is_set():
            raise Cancelled("stopped while it was measured what 8 bits spoil; a later run starts again")
        tried = config.override_many("layers", floats, keep_float=True)
        return quantize_graph(self._prepared, side.statistics, tried, side.memo)


def _ends(graph: Graph, config: QuantConfig) -> list[str]:
    """All that any trial has ranges of: what enters the graph, and what fused groups make. Trials keep whole ones."""
    apart = {*norm_parts(graph), *choices_of(graph, config).excluded}
    ends = {*graph.inputs, *(value for group in find_groups(graph, apart) for value in group.outputs)}
    return [name for name in observed(graph) if name in ends]


def _integer_groups(quantized: Quantized) -> list[list[str]]:
    """The nodes of each fused group that runs in integers."""
    floats = {node.name for node in quantized.annotated.nodes if node.reason}
    groups = ([node.name for node in group.nodes] for group in find_groups(quantized.prepared))
    return [names for names in groups if floats.isdisjoint(names)]


def _chosen(stretches: Sequence[_Stretch], allowed: float) -> list[_Stretch]:
    """Those without which the others keep below an error, for little time."""
    left, kept = [*stretches], list[_Stretch]()

    def excess(some: Sequence[_Stretch]) -> Noise:
        sums = {name: sum(stretch.noise[name] for stretch in some) - allowed for name in stretches[0].noise}
        return {name: over for name, over in sums.items() if over > 0}

    while over := excess(left):
        best = max(left, key=lambda s: sum(min(s.noise[name] / most, 1) for name, most in over.items()) / s.saved)
        left.remove(best)
        kept.append(best)
    for stretch in sorted(kept, key=lambda stretch: -stretch.saved):  # the others may be enough by now
        if not excess([*left, stretch]):
            left.append(stretch)
            kept.remove(stretch)
    return kept


def _cut(groups: Sequence[Sequence[str]], parts: int) -> list[Sequence[Sequence[str]]]:
    """About equal parts of a sequence, in order."""
    ends = [len(groups) * number // parts for number in range(parts + 1)]
    return [groups[first:last] for first, last in pairwise(ends) if first < last]


def _nodes(stretches: Iterable[_Stretch]) -> list[str]:
    return [name for stretch in stretches for group in stretch.groups for name in group]


def _worst(each: Iterable[Noise]) -> Noise:
    found = [*each]
    return {name: max(noise[name] for noise in found) for name in found[0]}
