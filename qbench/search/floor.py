"""What is spared 8 bits so that no output is spoiled: measured on data that the ranges were not chosen on.

What 8 bits keep of single tensors does not tell what a deep network loses, nor what becomes of an output of its own
scale, of weights, or of states that leave the range which they had at first. So each output is measured; where one is
spoiled, the errors of stretches of the network are measured alone, and those with most error for their time get 16
bits until all outputs are good, or stay in float where 16 bits do not do. Errors add up about as powers do, which is
why few trials do.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

from qbench.calibration.collect import observed
from qbench.data.dataset import Dataset
from qbench.errors import Cancelled
from qbench.ir.graph import Graph
from qbench.ops.products import macs
from qbench.passes.choices import choices_of
from qbench.passes.groups import Group, find_groups
from qbench.passes.norm_parts import norm_parts
from qbench.passes.pipeline import Trace
from qbench.progress import Cancel, Progress
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import Quantized, quantize_graph
from qbench.search.cost import effort
from qbench.search.nearness import LOST_DB, Exact
from qbench.search.sides import Side, sides_of
from qbench.search.spared import Spared, cut, in_16_bits, in_float, integer_groups

FLOOR_DB = LOST_DB
"""What no output may be below: an error of a tenth, which moves few decisions; of a choice, what `Exact` says."""

_GOAL_DB, _UNSURE_DB, _SURE = 23.0, 3.0, 8
"""What an output is brought to that was below: other data lose more than what was measured. So much more where half as
many samples are judged on, or fewer."""
_GOOD_DB, _TIMES = 30.0, 1.25
"""What it is brought to by 16 bits, which cost half of what floats do; but not below so many times the noise that all
in 16 bits leave."""

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
    """Fused groups that follow each other; the noise that they alone make in 8 bits, and what time that saves."""

    groups: Sequence[Group]
    noise: Noise
    saved: float


def measure_spared(
    prepared: Trace,
    config: QuantConfig,
    data: Dataset,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    executor: Executor | None = None,
) -> Spared:
    """What gets 16 bits or stays in float beside what the config keeps there.

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
    return _Trials(prepared, config, sides, trials, progress, cancel).spared()


class _Trials:
    """Configs measured one after the other, a bounded number of them."""

    def __init__(
        self,
        prepared: Trace,
        config: QuantConfig,
        sides: list[Side],
        most: int,
        progress: Progress | None,
        cancel: Cancel | None,
    ) -> None:
        self._prepared, self._config, self._sides, self._most, self._done = prepared, config, sides, most, 0
        self._progress, self._cancel = progress, cancel
        halvings = math.log2(_SURE / min(len(side.all.feeds) for side in sides))
        self._unsure = _UNSURE_DB * min(max(halvings, 0.0), 1.0)
        self._allowed: Noise = {}
        self._spare: Callable[[Iterable[Group]], Spared] = in_float

    def spared(self) -> Spared:
        """What is spared 8 bits."""
        tried = [self._tried((), side, side.all) for side in self._sides]
        quantized, noise = tried[0][0], _worst(noise for _, noise in tried)
        if max(noise.values(), default=0.0) <= 10 ** (-FLOOR_DB / 10):
            return self._spared(())
        worst = max(noise, key=noise.__getitem__)
        decibels = "no number" if noise[worst] >= _WORST else f"{-10 * math.log10(noise[worst]):.0f} dB"
        reason = f"default: in 8 bits they leave {decibels} of output {worst!r}, less than {FLOOR_DB:g}"
        if max(tried[-1][1].values()) > max(tried[0][1].values()):
            self._sides.reverse()
        groups = self._choose_how(integer_groups(quantized), reason, noise)
        stretches, room = self._told_apart(groups)
        kept: Sequence[_Stretch] = ()
        for share in _SHARES:
            more = _chosen(stretches, {name: share * each for name, each in room.items()}) if share else stretches
            if len(more) > len(kept):
                kept = more
                noise = self._noise(kept)
                if not self._spoils(noise):
                    return self._spared(self._needed(kept, noise))
        return self._spared(kept)

    def _spared(self, kept: Sequence[_Stretch]) -> Spared:
        return replace(self._spare(_groups(kept)), least_db=self._config.activations.least_db)

    def _choose_how(self, groups: Sequence[Group], reason: str, names: Iterable[str]) -> Sequence[Group]:
        """16 bits, where outputs would be good with all in 16 bits, or else floats; and the groups that are in 8."""
        allowed, good, measured = self._noise_of(_GOAL_DB), self._noise_of(_GOOD_DB), self._config
        self._allowed = dict.fromkeys(names, allowed)
        self._config = measured.with_value("activations.least_db", 0.0)
        every = integer_groups(quantize_graph(self._prepared, self._sides[0].statistics, self._config))
        self._spare = partial(in_16_bits, self._prepared.graph, reason=reason)
        left = _worst(self._tried(every, side, side.all)[1] for side in self._sides)
        if not self._spoils(left):
            self._allowed = {name: min(max(_TIMES * each, good), allowed) for name, each in left.items()}
            return every
        self._config, self._spare = measured, partial(in_float, reason=reason)
        return groups

    def _needed(self, kept: Sequence[_Stretch], noise: Noise) -> Sequence[_Stretch]:
        """Those without which the outputs are not good, as far as trials are left: the dearest are asked first."""
        for stretch in sorted(kept, key=lambda stretch: -stretch.saved):
            fewer = [other for other in kept if other is not stretch]
            both = {name: noise[name] + stretch.noise[name] for name in noise}
            if self._done < self._most and fewer and not self._spoils(both, _FAR):
                found = self._noise(fewer)
                if not self._spoils(found):
                    kept, noise = fewer, found
        return kept

    def _told_apart(self, groups: Sequence[Group]) -> tuple[list[_Stretch], Noise]:
        """Stretches that cover the groups, each measured alone, on the side where 8 bits spoil most: short ones where
        much time is at stake; and what noise they may make together."""
        side = self._sides[0]
        spared, left = self._tried(groups, side, side.few)
        longest = effort(spared.graph)
        room = {name: max(allowed - left[name], 0.0) for name, allowed in self._allowed.items()}

        def alone(part: Sequence[Group]) -> _Stretch:
            heads = {group.head.name for group in part}
            others = [group for group in groups if group.head.name not in heads]
            quantized, noise = self._tried(others, side, side.few)
            own = {name: max(noise[name] - left[name], 0.0) for name in noise}
            return _Stretch(part, own, max(longest - effort(quantized.graph), _LEAST_SAVED * longest))

        found = [alone(part) for part in cut(groups, _FIRST)]
        while self._done < self._most * _TOLD_APART:
            long = [stretch for stretch in _chosen(found, room) if len(stretch.groups) > 1]
            if not long:
                break
            at = found.index(max(long, key=lambda stretch: stretch.saved))
            found[at : at + 1] = [alone(part) for part in cut(found[at].groups, 2)]
        return found, room

    def _noise(self, kept: Sequence[_Stretch]) -> Noise:
        """What is left with these spared, of all sides the most; of the first that is spoiled, where one is."""
        found = list[Noise]()
        for side in self._sides:
            found.append(self._tried(_groups(kept), side, side.all)[1])
            if self._spoils(found[-1]):
                break
        return _worst(found)

    def _noise_of(self, decibels: float) -> float:
        """What leaves so much on other data, as far as the samples can tell."""
        return 10 ** (-(decibels + self._unsure) / 10)

    def _spoils(self, noise: Noise, times: float = 1.0) -> bool:
        return any(each > times * self._allowed[name] for name, each in noise.items())

    def _tried(self, groups: Iterable[Group], side: Side, exact: Exact) -> tuple[Quantized, Noise]:
        if self._cancel is not None and self._cancel.is_set():
            raise Cancelled("stopped while it was measured what 8 bits spoil; a later run starts again")
        tried = self._spare(groups).applied(self._prepared.graph, self._config)
        quantized = quantize_graph(self._prepared, side.statistics, tried, side.memo)
        decibels = exact.decibels(quantized.graph)
        self._done += 1
        if self._progress is not None and self._done > len(self._sides):  # most models need one trial of each
            self._progress(min(self._done, self._most), self._most)
        return quantized, {name: min(10 ** (-found / 10), _WORST) for name, found in decibels.items()}


def _ends(graph: Graph, config: QuantConfig) -> list[str]:
    """All that any trial has ranges of: what enters the graph, and what fused groups make. Trials keep whole ones."""
    apart = {*norm_parts(graph), *choices_of(graph, config).excluded}
    ends = {*graph.inputs, *(value for group in find_groups(graph, apart) for value in group.outputs)}
    return [name for name in observed(graph) if name in ends]


def _chosen(stretches: Sequence[_Stretch], allowed: Noise) -> list[_Stretch]:
    """Those without which the others keep below an error, for little time."""
    left, kept = [*stretches], list[_Stretch]()

    def excess(some: Sequence[_Stretch]) -> Noise:
        sums = {name: sum(stretch.noise[name] for stretch in some) - most for name, most in allowed.items()}
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


def _groups(stretches: Iterable[_Stretch]) -> list[Group]:
    return [group for stretch in stretches for group in stretch.groups]


def _worst(each: Iterable[Noise]) -> Noise:
    found = [*each]
    return {name: max(noise[name] for noise in found) for name in found[0]}
