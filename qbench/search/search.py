"""Search for a config within a budget: repairs, one after the other, until what is wanted is reached or time is up.

Every trial is a value in a ledger, so that a search which was killed finds at once what it had measured; and after each
trial the best so far is known. The order of the trials depends on data and config alone, not on what time they take.
"""

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from qbench.errors import Cancelled
from qbench.evaluate.evaluate import evaluate
from qbench.evaluate.probe import Probe
from qbench.ops.products import macs
from qbench.progress import Cancel
from qbench.quant.config import QuantConfig
from qbench.search.advice import RUNGS, whole_regions
from qbench.search.attribution import Attribution, attribute
from qbench.search.choices import choose
from qbench.search.front import Found, Front, Limits
from qbench.search.proposals import group_repairs
from qbench.search.regions import Region, groups_of, regions_of
from qbench.search.repairs import KeepFloat, NarrowWeights, Repair
from qbench.search.subject import Subject

_STEMS = (2, 4, 8)  # groups
_REGIONS, _MEASURED = 8, 4  # regions that are tried on the metric, and repairs that are measured on all data
_PATIENCE = 3  # rounds that find nothing better
_GUESSES, _NEAR_DB = (2, 4), 3.0  # groups; own error that is at least half of what is inherited
_NOTHING_DB = 0.0  # an output below it is noise: nothing is to be repaired there
_LEAN, _SETTLED = "all in 8 bits", "what 8 bits would spoil in float"
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
        the search begins with all in 8 bits, and comes to it when nothing else has reached what is wanted.

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
    config = config if settle is None else _lean(config)
    subject.check_metric(config)
    exact = subject.float_quality.metric
    limits = limits.or_near(exact)
    rows = [_found(subject, "start" if settle is None else _LEAN, config)]
    deadline.armed = True

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
    by_default = [name for name, layer in config.layers.items() if layer.reason]
    least = None if config.activations.least_db is None else 0.0
    return config.with_value("activations.least_db", least).without_many("layers", by_default)


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
        yield from _smaller(subject, config)
    done, best, dull = set[QuantConfig](), -math.inf, 0
    start: QuantConfig | None = config if is_noise else lean
    while start is not None and dull < _PATIENCE and rows[-1].metric < enough:
        done.add(start)
        found = yield from _repaired(subject, start, enough, rows)
        done.add(found)
        newest = max(row.metric for row in rows)
        best, dull = max(best, newest), 0 if newest > best else dull + 1
        left = [row for row in rows if row.config not in done and not limits.spent(row)]
        if settle is not None and (dull == _PATIENCE or not left) and newest < enough:
            yield _SETTLED, settle(subject.cancel)
            left, settle, dull = [rows[-1]], None, 0
        start = max(left, key=lambda row: row.metric).config if left else None
    if rows[-1].metric >= enough:
        found = rows[-1].config
        yield from _cheaper(subject, found, enough, lambda: rows[-1])
        if limits.max_bytes is not None and found.layers:
            yield from _smaller(subject, found)


def _repaired(
    subject: Subject, config: QuantConfig, enough: float, rows: Sequence[Found]
) -> Generator[tuple[str, QuantConfig], None, QuantConfig]:
    """A config with choices made for the whole model, and it with repairs of regions, until one is good enough."""
    config = yield from _globally(subject, config, rows)
    tried = _guesses(subject, config) if subject.is_slow else iter(())
    for label, repaired in chain(tried, _regions(subject, config, enough)):
        if rows[-1].metric >= enough:
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
    yield _before(config) + ", ".join(map(str, choice.repairs)), choice.config
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
        yield f"{_before(config)}{repair}", repair.apply(config)


def _regions(subject: Subject, config: QuantConfig, enough: float) -> Iterator[tuple[str, QuantConfig]]:
    """Repairs of regions: what promises enough at once, then the others that do, the cheapest first, then the best."""
    exact = subject.probed_float
    wanted = enough - subject.float_quality.metric + exact if math.isfinite(exact) else enough
    now, rung, found = subject.probed(config), subject.rung(RUNGS[0]), list[tuple[float, float, Repair]]()

    def ask(repair: Repair) -> float:
        tried = repair.apply(config)
        metric = subject.probed(tried)
        if metric > now:
            found.append((metric, rung([tried])[0].effort, repair))
        return metric

    metrics, told = list[tuple[float, list[Repair]]](), set[Repair]()
    for region in _promising(subject, config):
        in_float, *in_16 = group_repairs(subject, config, region.groups, region.kind)
        metrics.append((ask(in_float), in_16))
        if metrics[-1][0] >= wanted:
            told.add(in_float)
            yield f"{_before(config)}{in_float}", in_float.apply(config)
    metrics.sort(key=lambda one: -one[0])
    for _, in_16 in metrics[:_MEASURED]:
        for repair in in_16:
            ask(repair)
    found.sort(key=lambda one: (0, one[1]) if one[0] >= wanted else (1, -one[0]))
    for repair in [repair for _, _, repair in found if repair not in told][:_MEASURED]:
        yield f"{_before(config)}{repair}", repair.apply(config)


def _promising(subject: Subject, config: QuantConfig) -> Iterator[Region]:
    """The stem, since nothing behind it can make up for what it loses, and it is known without trials; then others."""
    lost, known = _lost(subject, config), set[tuple[str, ...]]()
    stems = (r for r in regions_of(subject.prepared, lost) if r.kind == "prefix" and len(r.groups) in _STEMS)
    for region in stems:
        known.add(region.groups)
        yield region
    yield from (r for r in whole_regions(subject, config, lost, _REGIONS) if r.groups not in known)


def _cheaper(
    subject: Subject, config: QuantConfig, enough: float, newest: Callable[[], Found]
) -> Iterator[tuple[str, QuantConfig]]:
    """The config with fused groups back in integers, one after the other, as long as it has the quality wanted."""
    rung, loss = subject.rung(RUNGS[0]), subject.float_quality.metric - subject.probed_float
    for head, members in groups_of(subject.prepared).items():
        if not any(config.layers[name].keep_float for name in members if name in config.layers):
            continue
        fewer = config.override_many("layers", members, keep_float=None)
        now, then = rung([config, fewer])
        if then.effort < now.effort and not subject.probed(fewer) + loss < enough:  # NaN where there is no metric
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
