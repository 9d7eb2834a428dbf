"""Search for a config within a budget: repairs, one after the other, until what is wanted is reached or time is up.

Every trial is a value in a ledger, so that a search which was killed finds at once what it had measured; and after each
trial the best so far is known. The order of the trials depends on data and config alone, not on what time they take.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

from qbench.errors import Cancelled
from qbench.evaluate.evaluate import evaluate
from qbench.evaluate.probe import Probe
from qbench.ops.products import macs
from qbench.progress import Cancel
from qbench.quant.config import QuantConfig
from qbench.search.advice import RUNGS, regional
from qbench.search.attribution import Attribution, attribute
from qbench.search.front import Found, Front, Limits
from qbench.search.joint import score
from qbench.search.regions import groups_of
from qbench.search.repairs import KeepFloat, NarrowWeights, Repair, global_repairs
from qbench.search.subject import Subject

__all__ = ["search"]

_LEAST_DB = 0.2  # what a repair must give on calibration data to stay
_GUESSES, _NEAR_DB = (2, 4), 3.0  # groups; own error that is at least half of what is inherited
_NOTHING_DB = 0.0  # an output below it is noise: nothing is to be repaired there
_SMALLER = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)  # shares of the weights that are tried in 4 bits


@dataclass
class _Deadline:
    """Set when the time is up, once it is armed, or when somebody else asks to stop."""

    seconds: float | None
    other: Cancel | None
    armed: bool = False
    started: float = field(default_factory=time.monotonic)

    def is_set(self) -> bool:
        late = self.armed and self.seconds is not None and time.monotonic() - self.started > self.seconds
        return late or (self.other is not None and self.other.is_set())


def search(
    subject: Subject,
    config: QuantConfig,
    limits: Limits,
    tell: Callable[[Front], object] | None = None,
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
    subject.check_metric(config)
    exact = subject.float_quality.metric
    limits = limits.or_near(exact)
    rows = [_found(subject, "start", config)]
    deadline.armed = True

    def so_far(stopped: bool = False) -> Front:
        return Front(tuple(rows), exact, limits, stopped)

    try:
        if tell is not None:
            tell(so_far())
        for label, tried in _proposals(subject, config, limits, rows):
            rows.append(_found(subject, label, tried))
            if tell is not None:
                tell(so_far())
    except Cancelled:
        return so_far(stopped=True)
    return so_far()


def _proposals(
    subject: Subject, config: QuantConfig, limits: Limits, rows: Sequence[Found]
) -> Iterator[tuple[str, QuantConfig]]:
    """Configs worth measuring on all data, in turn; what is measured of one decides on the next."""
    enough = math.inf if limits.at_least is None else limits.at_least
    starts, lean = [config], config.with_value("activations.least_db", None)
    if lean != config:
        yield "all in 8 bits", lean
        if rows[-1].sqnr_db is not None and rows[-1].sqnr_db > _NOTHING_DB:
            starts.insert(0, lean)
    if limits.max_bytes is not None:
        yield from _smaller(subject, config)
    for start in starts:
        found = yield from _repaired(subject, start, limits, enough, rows)
        if rows[-1].metric >= enough:
            yield from _cheaper(subject, found, enough, lambda: rows[-1])
            if limits.max_bytes is not None and found.layers:
                yield from _smaller(subject, found)
            return


def _repaired(
    subject: Subject, config: QuantConfig, limits: Limits, enough: float, rows: Sequence[Found]
) -> Generator[tuple[str, QuantConfig], None, QuantConfig]:
    """A config with repairs, one after the other, until it is good enough, costs too much or nothing helps."""
    config = yield from _globally(subject, config, rows)
    if subject.is_slow:
        for label, tried in _guesses(subject, config):
            yield label, tried
            if rows[-1].metric >= enough:
                return tried
    while rows[-1].metric < enough:
        ranked, first = [*_regions(subject, config)], len(rows)
        for label, tried in ranked:
            yield label, tried
            if rows[-1].metric >= enough:
                return tried
        if not ranked:
            break
        config = max(rows[first:], key=lambda row: (-limits.spent(row), row.metric)).config
        if limits.spent(rows[-1]) and limits.spent(rows[first]):
            break
        config = yield from _globally(subject, config, rows)  # what was best for noise need not be for what is left
    return config


def _globally(
    subject: Subject, config: QuantConfig, rows: Sequence[Found]
) -> Generator[tuple[str, QuantConfig], None, QuantConfig]:
    """The edits of the whole model by which the output gains on calibration data, if the metric agrees."""
    rung, better, kept = subject.rung(RUNGS[-1]), config, list[str]()
    before = rung([config])[0]
    for repair in global_repairs(config):
        tried = repair.apply(better)
        worth = rung([tried])[0]
        if worth.sqnr_db > before.sqnr_db + _LEAST_DB:
            better, before = tried, worth
            kept.append(str(repair))
    if kept:
        now = next((row.metric for row in rows if row.config == config), -math.inf)
        yield _before(config) + ", ".join(kept), better
        return better if rows[-1].metric >= now else config
    return config


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
        yield f"{_before(config)}{repair}", repair.apply(config)


def _regions(subject: Subject, config: QuantConfig) -> Iterator[tuple[str, QuantConfig]]:
    """The best repairs of regions, best first; none where nothing is to be gained."""
    repairs = regional(subject, config, _lost(subject, config), 2)
    now, *then = subject.rung(RUNGS[-1])([config, *(repair.apply(config) for repair in repairs)])
    ranked = sorted(zip(repairs, then, strict=True), key=lambda pair: -score(now, pair[1]))
    for repair, worth in ranked:
        if worth.sqnr_db > now.sqnr_db + _LEAST_DB:
            yield f"{_before(config)}{repair}", repair.apply(config)


def _cheaper(
    subject: Subject, config: QuantConfig, enough: float, newest: Callable[[], Found]
) -> Iterator[tuple[str, QuantConfig]]:
    """The config with fused groups back in integers, one after the other, as long as it has the quality wanted."""
    rung = subject.rung(RUNGS[0])
    for head, members in groups_of(subject.prepared).items():
        if not any(config.layers[name].keep_float for name in members if name in config.layers):
            continue
        fewer = config.override_many("layers", members, keep_float=None)
        now, then = rung([config, fewer])
        if then.effort < now.effort:
            yield f"{_before(fewer)}without {head}", fewer
            config = fewer if newest().metric >= enough else config


def _smaller(subject: Subject, config: QuantConfig) -> Iterator[tuple[str, QuantConfig]]:
    """Ever more weights in 4 bits, those first whose loss is least for the bytes that it saves."""
    graph = subject.prepared
    weights = {
        node.inputs[1]: graph.constants[node.inputs[1]].array.size
        for node in graph.nodes
        if macs(graph, node) and node.inputs[1] in graph.constants
    }
    names = [name for name in weights if name in subject.quantized(config).encodings]
    tried = [NarrowWeights("", (name,)).apply(config) for name in names]
    now, *then = subject.rung(RUNGS[0])([config, *tried])
    loss = {name: (worth.noise - now.noise) / weights[name] for name, worth in zip(names, then, strict=True)}
    ranked = sorted(names, key=loss.__getitem__)
    total, counts = sum(weights[name] for name in names), list[int]()
    for share in _SMALLER:
        spent, count = 0, 0
        while count < len(ranked) and spent + weights[ranked[count]] <= share * total:
            spent, count = spent + weights[ranked[count]], count + 1
        counts.append(count)
    for count in dict.fromkeys(number for number in counts if number):
        repair: Repair = NarrowWeights("their loss is least for the bytes that it saves", tuple(ranked[:count]))
        yield f"{_before(config)}{repair}", repair.apply(config)


def _before(config: QuantConfig) -> str:
    """What a label says of the repairs that a config has already."""
    kept = sum(layer.keep_float is True for layer in config.layers.values())
    return f"{kept} layers in float, " if kept else ""


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
