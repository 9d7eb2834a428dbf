"""Search for a config within a budget: repairs, one after the other, until what is wanted is reached or time is up.

Every trial is a value in a ledger, so that a search which was killed finds at once what it had measured; and after each
trial the best so far is known. The order of the trials depends on data and config alone, not on what time they take.
"""

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from qbench.errors import Cancelled
from qbench.evaluate.evaluate import evaluate
from qbench.evaluate.probe import Probe
from qbench.garbage import set_aside
from qbench.progress import Cancel, stopped
from qbench.quant.config import QuantConfig
from qbench.search.advice import RUNGS, whole_regions
from qbench.search.attribution import Attribution, attribute
from qbench.search.choices import choose
from qbench.search.front import Found, Front, Limits, lost
from qbench.search.joint import PRICE
from qbench.search.lighter import lighter
from qbench.search.proposals import can_spare, group_repairs
from qbench.search.regions import Region, regions_of
from qbench.search.repairs import KeepFloat, Repair, Spare, before
from qbench.search.smaller import smaller
from qbench.search.subject import Subject
from qbench.search.width import in_16_bits_or_8

_STEMS = (2, 4, 8)  # groups
_REGIONS, _MEASURED, _STEMS_MEASURED = 8, 4, 2  # regions tried on the metric, and repairs measured on all data
_PATIENCE = 3  # rounds that find nothing better
_GUESSES, _NEAR_DB = (2, 4), 3.0  # groups; own error that is at least half of what is inherited
_NOTHING_DB = 0.0  # an output below it is noise: nothing is to be repaired there
_POOR = 0.5  # share of the float model's metric
_LEAN, _SETTLED = "all in 8 bits", "as the default preset"


@dataclass
class _Deadline:
    """Set when the time is up, once it is armed, or when somebody else asks to stop."""

    seconds: float | None
    other: Cancel | None
    armed: bool = False
    started: float = field(default_factory=time.monotonic)

    def is_set(self) -> bool:
        late = self.armed and self.seconds is not None and time.monotonic() - self.started > self.seconds
        return late or stopped(self.other)


@dataclass(frozen=True)
class _Promise:
    """Of a repair, on a few samples: the metric, how much less is lost, and its time as a share of what it was."""

    repair: Repair
    metric: float
    gain: float
    effort: float

    @property
    def for_its_time(self) -> float:
        """What it gives for the time that it costs."""
        return self.gain / (PRICE + max(0.0, self.effort - 1))


@set_aside()
def search(
    subject: Subject,
    config: QuantConfig,
    limits: Limits,
    tell: Callable[[Front], object] | None = None,
    settle: Callable[[Cancel | None], QuantConfig] | None = None,
) -> Front:
    """Look for configs that lose less, or cost less, than the one that is given.

    Parameters
    ----------
    subject
        The model, its data and metric; its `cancel` ends the search with what was found by then.
    config
        To start from. Where it keeps in float what 8 bits would spoil, all in 8 bits is measured too, and repaired:
        what is kept for good reasons in general is often not what one model needs.
    limits
        What is wanted, and for how long to look; where nothing is said, the fastest config whose metric is within a
        hundredth of the float model's.
    tell
        Called with all that was found whenever there is more.
    settle
        Measures what the config leaves to be measured, where that was not done: it takes as long as many trials, so
        the search begins with all in 8 bits, and comes to it when nothing else has reached what is wanted. To a config
        that spares nothing it comes then, too.

    Returns
    -------
    Front
        All that was measured; see :attr:`~qbench.search.front.Front.best`.

    Raises
    ------
    DataError
        A metric that is constant, raises, or gives no finite number.
    Cancelled
        Stopped before anything was measured.
    """
    deadline = _Deadline(limits.seconds, subject.cancel)
    subject = replace(subject, cancel=deadline)
    config = config if settle is None else _unmeasured(_lean(config))
    subject.check_metric(config)
    exact = subject.float_quality.metric
    limits = limits.or_near(exact)
    rows = [_found(subject, "start" if settle is None else _LEAN, config)]
    deadline.armed = True
    if settle is None and can_spare(subject, config):
        settle = partial(subject.settle, Spare("").apply(config))

    def so_far(stopped: bool = False) -> Front:
        return Front(tuple(rows), exact, limits, stopped)

    try:
        if tell is not None:
            tell(so_far())
        for label, tried in _proposals(subject, config, limits, rows, settle):
            rows.append(_found(subject, label, tried))
            if tell is not None:
                tell(so_far())
    except Cancelled:
        return so_far(stopped=True)
    return so_far()


def _lean(config: QuantConfig) -> QuantConfig:
    """The config with all in 8 bits but what would be no number, as parts of normalizations are."""
    floats = [name for name, layer in config.layers.items() if layer.reason]
    wide = [name for name, tensor in config.tensors.items() if tensor.reason]
    least = None if config.activations.least_db is None else 0.0
    lean = config.with_value("activations.least_db", least)
    return lean.without_many("layers", floats).without_many("tensors", wide)


def _unmeasured(config: QuantConfig) -> QuantConfig:
    """The config without weights that are rounded only once it is known that it helps."""
    return config.with_value("weights.rounding", "nearest") if config.weights.rounding == "measured" else config


def _proposals(
    subject: Subject,
    config: QuantConfig,
    limits: Limits,
    rows: Sequence[Found],
    settle: Callable[[Cancel | None], QuantConfig] | None,
) -> Iterator[tuple[str, QuantConfig]]:
    """Configs worth measuring on all data, in turn; what is measured of one decides on the next."""
    enough = math.inf if limits.at_least is None else limits.at_least
    lean = _lean(config)
    if lean != config:
        yield _LEAN, lean
    is_noise = (rows[-1].sqnr_db or -math.inf) <= _NOTHING_DB
    if is_noise and settle is not None:
        config, settle = settle(subject.cancel), None
        yield _SETTLED, config
    if limits.max_bytes is not None:
        yield from smaller(subject, next(row for row in rows if row.config == config), limits.max_bytes)
        small = [row for row in rows if not limits.spent(row)]
        if small and limits.spent(rows[0]):  # nothing that begins with the others would fit
            config = lean = min(small, key=Front((rows[0],), subject.float_quality.metric, limits).lost).config
    done, least, dull = set[QuantConfig](), math.inf, 0
    start: QuantConfig | None = config if is_noise else lean
    loss = Front((rows[0],), subject.float_quality.metric, limits).lost
    is_poor, is_wide = _is_poor(rows[-1], subject.float_quality.metric), False
    while start is not None and dull < _PATIENCE and not _is_enough(rows[-1], limits):
        if not is_wide and (is_poor or done) and max(row.metric for row in rows) < enough:
            is_wide = True
            yield from in_16_bits_or_8(subject, lean, limits, rows)
            if limits.max_ms is None and max(row.metric for row in rows) >= enough:
                break
            left = [row for row in rows if row.config not in done and not limits.spent(row)]
            start = min(left, key=loss).config if left else start
        done.add(start)
        found = yield from _repaired(subject, start, limits, rows)
        done.add(found)
        newest = min(map(loss, [row for row in rows if not limits.spent(row)] or rows))
        least, dull = min(least, newest), 0 if newest < least else dull + 1
        left = [row for row in rows if row.config not in done and not limits.spent(row)]
        if settle is not None and (dull == _PATIENCE or not left) and max(row.metric for row in rows) < enough:
            settled, settle = settle(subject.cancel), None
            if subject.quantized(settled).graph != subject.quantized(lean).graph:
                yield _SETTLED, settled
                left, dull = [rows[-1]], 0
        start = min(left, key=loss).config if left else None
    reached = [row for row in rows if row.metric >= enough]
    if reached and (limits.max_ms is None or all(map(limits.spent, reached))):
        found = min(reached, key=lambda row: row.ms)
        yield from lighter(subject, found, enough, lambda: rows[-1])
        if limits.max_bytes is not None and found.config.layers:
            yield from smaller(subject, found, limits.max_bytes)


def _is_poor(row: Found, exact: float) -> bool:
    """Whether so much of the metric is lost that no repair of a few layers is likely to do."""
    return math.isfinite(exact) and exact - row.metric > _POOR * abs(exact)


def _is_enough(row: Found, limits: Limits) -> bool:
    """Whether nothing better is looked for: where time is said, what it allows is used."""
    return limits.max_ms is None and limits.at_least is not None and row.metric >= limits.at_least


def _repaired(
    subject: Subject, config: QuantConfig, limits: Limits, rows: Sequence[Found]
) -> Generator[tuple[str, QuantConfig], None, QuantConfig]:
    """A config with choices made for the whole model, and it with repairs of regions, until one is good enough."""
    config = yield from _globally(subject, config, rows)
    ms = next((row.ms for row in rows if row.config == config), 0.0)
    spare = math.inf if limits.max_ms is None or not ms else limits.max_ms / ms
    tried = _guesses(subject, config) if subject.is_slow else iter(())
    for label, repaired in chain(tried, _regions(subject, config, limits, spare)):
        if _is_enough(rows[-1], limits):
            break
        yield label, repaired
    return config


def _globally(
    subject: Subject, config: QuantConfig, rows: Sequence[Found]
) -> Generator[tuple[str, QuantConfig], None, QuantConfig]:
    """The edits of the whole model by which the output gains on calibration data, if the metric agrees."""
    choice = choose(subject, config)
    if not choice.repairs:
        return config
    now = next((row.metric for row in rows if row.config == config), -math.inf)
    yield before(config) + ", ".join(map(str, choice.repairs)), choice.config
    return choice.config if rows[-1].metric >= now else config


def _lost(subject: Subject, config: QuantConfig) -> Attribution:
    probe = Probe(subject.fed, subject.calibration, RUNGS[0]).data
    return attribute(subject.prepared, evaluate(subject.quantized(config), probe, probe=probe, cancel=subject.cancel))


def _guesses(subject: Subject, config: QuantConfig) -> Iterator[tuple[str, QuantConfig]]:
    """Groups where most is lost for good by errors of their own, in float: no trial finds them, so they come early."""
    own = [
        step
        for step in _lost(subject, config).falls
        if step.own_db is not None and (step.inherited_db is None or step.own_db < step.inherited_db + _NEAR_DB)
    ]
    for count in sorted({min(count, len(own)) for count in _GUESSES} - {0}):
        layers = tuple(name for step in own[:count] for name in step.nodes)
        repair = KeepFloat("what is lost there for good is their own error", layers)
        yield f"{before(config)}{repair}", repair.apply(config)


def _regions(subject: Subject, config: QuantConfig, limits: Limits, spare: float) -> Iterator[tuple[str, QuantConfig]]:
    """Repairs of regions: what promises enough at once, then the others that do, the cheapest first, then the best.

    Where time is said, `spare` times the config's: what gives most within it, and what gives most for its time.
    """
    exact, enough = subject.probed_float, math.inf if limits.at_least is None else limits.at_least
    wanted = enough - subject.float_quality.metric + exact if math.isfinite(exact) else enough
    now, rung, found = subject.probe(config), subject.rung(RUNGS[0]), list[_Promise]()

    def ask(repair: Repair) -> _Promise:
        tried = repair.apply(config)
        then = subject.probe(tried)
        before, after = rung([config, tried])
        gain = lost(now, now, exact) - lost(then, now, exact)
        promise = _Promise(repair, then[0], gain, after.effort / before.effort)
        if gain > 0 or promise.metric > now[0]:
            found.append(promise)
        return promise

    told = set[Repair]()
    for regions, most in _promising(subject, config):
        for region in regions:
            promises = map(ask, group_repairs(subject, config, region.groups, region.kind))
            for one in sorted(promises, key=lambda one: one.effort):  # 16 bits cost less than floats
                if one.metric >= wanted and one.effort <= spare:
                    told.add(one.repair)
                    yield f"{before(config)}{one.repair}", one.repair.apply(config)
        best = sorted(found, key=lambda one: (0, one.effort) if one.metric >= wanted else (1, -one.gain))
        if math.isfinite(spare):
            fitting = [one for one in best if one.effort <= spare]
            gainful, cheap = (
                sorted(fitting, key=lambda one: -one.gain),
                sorted(fitting, key=lambda one: -one.for_its_time),
            )
            best = list(dict.fromkeys(one for pair in zip(gainful, cheap, strict=True) for one in pair)) or best
        for repair in [one.repair for one in best if one.repair not in told][:most]:
            told.add(repair)
            yield f"{before(config)}{repair}", repair.apply(config)


def _promising(subject: Subject, config: QuantConfig) -> Iterator[tuple[Iterable[Region], int]]:
    """Regions, and how many repairs of them are measured on all data.

    The stem first, since nothing behind it can make up for what it loses, and it is known without trials; then others.
    """
    losing, is_first = _lost(subject, config), not before(config)
    prefixes = [r for r in regions_of(subject.prepared, losing) if r.kind == "prefix"]
    stems = [region for region in prefixes if is_first and len(region.groups) in _STEMS]
    yield stems, _STEMS_MEASURED if stems else 0
    known = {region.groups for region in stems}
    yield [r for r in whole_regions(subject, config, losing, _REGIONS) if r.groups not in known], _MEASURED


def _found(subject: Subject, label: str, config: QuantConfig) -> Found:
    quality, cost = subject.quality(config), subject.cost(config)
    return Found(
        label=label,
        config=config,
        metric=quality.metric,
        metric_chosen_on=quality.chosen_on,
        metric_held_back=quality.held_back,
        sqnr_db=quality.sqnr_db,
        ms=cost.ms,
        bytes=cost.bytes,
    )
