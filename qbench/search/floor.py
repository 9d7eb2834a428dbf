"""What is spared 8 bits so that no output is spoiled: measured on data that the ranges were not chosen on.

What 8 bits keep of single tensors does not tell what a deep network loses, nor what becomes of an output of its own
scale, of weights, or of states that leave the range which they had at first. So each output is measured. Where one is
spoiled, all gets 16 bits; the errors of stretches of the network are measured alone, and those with most error for
their time stay in float, until all outputs are good; then, of the rest, as much gets 8 bits again as leaves them good.
Errors add up about as powers do, which is why few trials do.
"""

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import cached_property

from qbench.calibration.collect import observed
from qbench.data.dataset import Dataset
from qbench.errors import Cancelled
from qbench.evaluate.measure import LOST_DB
from qbench.garbage import set_aside
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph
from qbench.passes.choices import choices_of
from qbench.passes.groups import Group, find_groups
from qbench.passes.norm_parts import norm_parts
from qbench.passes.pipeline import Trace
from qbench.passes.round_weights import RoundedTrace, RoundedWeight
from qbench.progress import Cancel, Progress, stopped
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import Quantized, check_config, quantize_graph
from qbench.search.cost import effort, products
from qbench.search.nearness import Exact
from qbench.search.rounding import helps
from qbench.search.sides import Side, needed_of_choices, sides_of
from qbench.search.spared import Spared, cut, entering, in_16_bits, in_float, integer_groups
from qbench.search.stretches import Apart, Noise, Stretch, groups_of, worst_of

FLOOR_DB = LOST_DB
"""What no output may be below: an error of a tenth, which moves few decisions; of a choice, what `Exact` says."""

_GOAL_DB, _UNSURE_DB, _SURE = 23.0, 3.0, 8
"""What an output is brought to that was below: other data lose more than what was measured. So much more where half as
many samples are judged on, or fewer."""
_GOOD_DB, _GOOD_FOUND_DB, _TIMES = 26.0, 24.5, 1.25
"""What it is brought to by 16 bits, which cost less than floats, one that says what is where to a bit less; but not
below so many times the noise that is left with nothing in 8."""

_TRIALS, _FEWEST_TRIALS = 44, 8
_MOST_MACS, _MANY_MACS = 3 << 36, 1 << 32
"""Of the trials of floats, or of 16 bits, together: of large models fewer stretches are told apart; and of a sample,
where one side will do."""
_FIRST, _TOLD_APART = 6, 0.4
"""Stretches at first; and the share of all trials that is spent on telling them apart."""
_FAR = 1.5
"""Errors add up about as powers do: where those of two stretches are so far over what is allowed, no trial is spent."""
_SHARES = (1.0, 0.5, 0.25, 0.1, 0.03, 0.0)
"""Of the error that is allowed: the next one where errors together were more than the sum of each alone."""
_WORST, _LEAST_SAVED = 1e10, 1e-3

Fit = Callable[[], FrozenMap[str, RoundedWeight]]


@set_aside()
def measure_spared(
    prepared: Trace,
    config: QuantConfig,
    data: Dataset,
    fit: Fit | None = None,
    equalized: Callable[[], Trace] | None = None,
    progress: Progress | None = None,
    cancel: Cancel | None = None,
    executor: Executor | None = None,
) -> Spared:
    """What gets 16 bits or stays in float beside what the config keeps there.

    Nothing, where 8 bits are good once the layers share out their ranges.

    Parameters
    ----------
    prepared, config
        As for :func:`~qbench.quantize.quantized.quantize_graph`.
    data
        Its samples are divided as :func:`~qbench.search.sides.sides_of` does.
    fit
        Rounds weights on all of the data but its last quarter: asked where 8 bits spoil something, and kept where that
        helps. None: weights go to the nearest integers.
    equalized
        Gives the float model whose layers have shared out their ranges: asked where 8 bits spoil something. None: no
        two layers can.
    progress
        Told the trials done, and how many there are at most.
    cancel, executor
        To stop it, and where ranges are taken.

    Raises
    ------
    Cancelled
        `cancel` was set.
    """
    check_config(prepared, config)
    graph = prepared.graph
    sizes = data.sizes
    work = max(1, products(graph, sizes))
    few, both = min(_SURE, max(1, _MOST_MACS // (work * _TRIALS))), work < _MANY_MACS
    few = max(few, needed_of_choices(graph, sizes)) if both else few
    most = max(_FEWEST_TRIALS, min(_TRIALS, _MOST_MACS // (work * min(few, _SURE))))

    def trials_of(trace: Trace) -> _Trials:
        sides = sides_of(trace.graph, data, _ends(trace.graph, config), few, both, executor, cancel)
        return _Trials(trace, config, sizes, sides, fit, most, progress, cancel)

    trials = trials_of(prepared)
    if equalized is not None and trials.is_spoiled and (other := trials_of(equalized())).is_good:
        return replace(other.spared(), equalize=True)
    return trials.spared()


class _Trials:
    """Configs measured one after the other, a bounded number of them."""

    def __init__(
        self,
        prepared: Trace,
        config: QuantConfig,
        sizes: Mapping[str, int],
        sides: list[Side],
        fit: Fit | None,
        most: int,
        progress: Progress | None,
        cancel: Cancel | None,
    ) -> None:
        self._prepared, self._sizes, self._sides, self._fit = prepared, sizes, sides, fit
        self._most, self._done, self._until = most, 0, most
        self._unseen = sides[0]
        self._weights: FrozenMap[str, RoundedWeight] | None = None
        self._config: QuantConfig = config
        self._progress, self._cancel = progress, cancel
        samples = [len(side.all.feeds) for side in sides]
        self._pooled = sides[0].all.texts if min(samples) < _SURE else frozenset[str]()
        self._unsure, self._unsure_of_pooled = (_unsure(count) for count in (min(samples), sum(samples)))
        self._allowed: Noise = {}
        self._entering: dict[str, list[str]] = {}
        self._rounded: Container[str] = ()
        self._reason, self._base, self._spare = "", Spared(), self._float

    @cached_property
    def _in_8_bits(self) -> list[Noise]:
        return [self._tried(Spared(), side, side.all)[1] for side in self._sides]

    @property
    def is_spoiled(self) -> bool:
        """Whether some output is, with nothing spared."""
        return max(self._joined(self._in_8_bits).values(), default=0.0) > 10 ** (-FLOOR_DB / 10)

    @property
    def is_good(self) -> bool:
        """Whether each output is what one that was spoiled is brought to."""
        return all(noise <= self._noise_of(name, _GOAL_DB) for name, noise in self._joined(self._in_8_bits).items())

    def spared(self) -> Spared:
        """What is spared 8 bits."""
        if not self.is_spoiled:
            return self._settled(Spared())
        noise = self._joined(self._in_8_bits)
        worst = max(noise, key=noise.__getitem__)
        decibels = "no number" if noise[worst] >= _WORST else f"{-10 * math.log10(noise[worst]):.0f} dB"
        self._reason = f"default: in 8 bits they leave {decibels} of output {worst!r}, less than {FLOOR_DB:g}"
        self._sides = self._worst_first(self._in_8_bits)
        self._allowed = {name: self._noise_of(name, _GOAL_DB) for name in noise}
        return self._settled(self._chosen())

    def _settled(self, spared: Spared) -> Spared:
        least_db = self._config.activations.least_db
        return replace(self._base.joined(spared), least_db=least_db, weights=self._weights)

    def _chosen(self) -> Spared:
        """Floats where outputs are not good with all in 16 bits; then 16 bits where they are not with the rest in 8."""
        self._config = self._config.with_value("activations.least_db", 0.0)
        every = self._integers()
        by_8, lefts = self._sides, self._fitted(self._wide(every))
        left = self._joined(lefts)
        if self._spoils(left):
            self._sides, self._base = self._worst_first(lefts), self._wide(every)
            kept, left = self._kept(self._apart(every))
            floats = groups_of(kept)
            self._sides, self._base = by_8, self._float(floats)
            if not (every := self._integers()):
                return Spared()
        self._spare, finds = self._wide, self._sides[0].all.judging.finds.joined
        good = {name: self._noise_of(name, _GOOD_FOUND_DB if name in finds else _GOOD_DB) for name in left}
        self._allowed = {name: min(max(_TIMES * each, good[name]), self._allowed[name]) for name, each in left.items()}
        return self._wide(groups_of(self._kept(self._apart(every))[0]))

    def _fitted(self, spared: Spared) -> list[Noise]:
        """What noise is left on each side with this spared, and weights rounded on data where that helps on samples
        that they were not rounded on."""
        plain = [self._tried(spared, side, side.all) for side in self._sides]
        if self._fit is not None:
            nearest, self._weights = self._prepared, self._fit()
            self._prepared = RoundedTrace(nearest.source, nearest.steps, self._weights)
            fitted = [self._tried(spared, side, side.all) for side in self._sides] if self._weights else plain
            at = self._sides.index(self._unseen)
            if helps(self._unseen.all, *(tried[at][0].graph for tried in (plain, fitted))):
                return [noise for _, noise in fitted]
            self._prepared, self._weights = nearest, FrozenMap()
        return [noise for _, noise in plain]

    def _worst_first(self, noises: Sequence[Noise]) -> list[Side]:
        """The sides, of each of which a noise was measured."""
        worst = {id(side): max(noise.values()) for side, noise in zip(self._sides, noises, strict=True)}
        return sorted(self._sides, key=lambda side: -worst[id(side)])

    def _apart(self, groups: Sequence[Group]) -> Apart:
        """Stretches that cover the groups, each measured alone, on the side that is spoiled most: short ones where much
        time is at stake."""
        side, until = self._sides[0], self._done + self._most * _TOLD_APART
        self._until = self._done + self._most
        spared, left = self._tried(self._spare(groups), side, side.few)
        longest = effort(spared.graph, self._sizes)
        room = {name: max(allowed - left[name], 0.0) for name, allowed in self._allowed.items()}

        def alone(part: Sequence[Group]) -> Stretch:
            heads = {group.head.name for group in part}
            others = [group for group in groups if group.head.name not in heads]
            quantized, noise = self._tried(self._spare(others), side, side.few)
            own = {name: max(noise[name] - left[name], 0.0) for name in noise}
            return Stretch(part, own, max(longest - effort(quantized.graph, self._sizes), _LEAST_SAVED * longest))

        found = [alone(part) for part in cut(groups, _FIRST)]
        while self._done < until:
            long = [stretch for stretch in Apart(found, room).spared() if len(stretch.groups) > 1]
            if not long:
                break
            at = found.index(max(long, key=lambda stretch: stretch.saved))
            found[at : at + 1] = [alone(part) for part in cut(found[at].groups, 2)]
        return Apart(found, room)

    def _kept(self, found: Apart) -> tuple[Sequence[Stretch], Noise]:
        """Those without which the outputs are not good, or all; and what noise is left."""
        kept, noise = list[Stretch](), dict.fromkeys(self._allowed, _WORST)
        for share in _SHARES:
            more = found.spared(share) if share else [*found.stretches]
            if len(more) > len(kept) or share == _SHARES[0]:
                kept, noise = more, self._noise(self._spare(groups_of(more)))
                if not self._spoils(noise):
                    return self._needed(kept, noise)
        return kept, noise

    def _needed(self, kept: Sequence[Stretch], noise: Noise) -> tuple[Sequence[Stretch], Noise]:
        """Those without which the outputs are not good, as far as trials are left: the dearest are asked first."""
        for stretch in sorted(kept, key=lambda stretch: -stretch.saved):
            fewer = [other for other in kept if other is not stretch]
            both = {name: noise[name] + stretch.noise[name] for name in noise}
            if self._done < self._until and fewer and not self._spoils(both, _FAR):
                found = self._noise(self._spare(groups_of(fewer)))
                if not self._spoils(found):
                    kept, noise = fewer, found
        return kept, noise

    def _integers(self) -> list[Group]:
        """The groups that run in integers, beside what is spared so far."""
        config = self._base.applied(self._prepared.graph, self._config)
        quantized = quantize_graph(self._prepared, self._sides[0].statistics, config)
        every, self._rounded = integer_groups(quantized), quantized.encodings.keys()
        self._entering = entering(self._prepared, every)
        return every

    def _wide(self, groups: Iterable[Group]) -> Spared:
        return in_16_bits(self._prepared.graph, groups, self._entering, self._rounded, self._reason)

    def _float(self, groups: Iterable[Group]) -> Spared:
        return in_float(groups, self._reason)

    def _noise(self, spared: Spared) -> Noise:
        """What is left with this spared, of all sides the most; of the first that is spoiled, where one is."""
        found = list[Noise]()
        for side in self._sides:
            found.append(self._tried(spared, side, side.all)[1])
            if self._spoils({name: each for name, each in found[-1].items() if name not in self._pooled}):
                break
        return self._joined(found)

    def _joined(self, noises: Sequence[Noise]) -> Noise:
        """Of several sides the most; of texts the mean where sides have few: of four, one is more than may be lost."""
        means = {name: math.fsum(noise[name] for noise in noises) / len(noises) for name in self._pooled}
        return {**worst_of(noises), **means}

    def _noise_of(self, name: str, decibels: float) -> float:
        """What leaves so much of an output on other data, as far as the samples can tell."""
        unsure = self._unsure_of_pooled if name in self._pooled else self._unsure
        return 10 ** (-(decibels + unsure) / 10)

    def _spoils(self, noise: Noise, times: float = 1.0) -> bool:
        return any(each > times * self._allowed[name] for name, each in noise.items())

    def _tried(self, spared: Spared, side: Side, exact: Exact) -> tuple[Quantized, Noise]:
        if stopped(self._cancel):
            raise Cancelled("stopped while it was measured what 8 bits spoil; a later run starts again")
        config = self._base.joined(spared).applied(self._prepared.graph, self._config)
        quantized = quantize_graph(self._prepared, side.statistics, config, side.memo, trial=True)
        decibels = exact.decibels(quantized.graph)
        self._done += 1
        if self._progress is not None and self._done > len(self._sides):  # most models need one trial of each
            self._progress(min(self._done, self._most), self._most)
        return quantized, {name: min(10 ** (-found / 10), _WORST) for name, found in decibels.items()}


def _unsure(samples: int) -> float:
    """In decibels, what more is asked of so many samples."""
    return _UNSURE_DB * min(max(math.log2(_SURE / samples), 0.0), 1.0)


def _ends(graph: Graph, config: QuantConfig) -> list[str]:
    """All that any trial has ranges of: what enters the graph, and what fused groups make. Trials keep whole ones."""
    apart = {*norm_parts(graph), *choices_of(graph, config).excluded}
    ends = {*graph.inputs, *(value for group in find_groups(graph, apart) for value in group.outputs)}
    return [name for name in observed(graph) if name in ends]
