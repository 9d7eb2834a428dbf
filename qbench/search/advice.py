"""What to do: repairs with what each gives and costs, measured, the best first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qbench.garbage import set_aside
from qbench.progress import Progress
from qbench.quant.config import QuantConfig
from qbench.search.attribution import Attribution
from qbench.search.cost import Cost
from qbench.search.joint import PRICE, Edit, Joint, Rung, gain_db, joint_gains, promising
from qbench.search.judge import Worth, noise
from qbench.search.proposals import cheap_repairs, global_repairs, group_repairs, in_float, spare_repairs
from qbench.search.quality import Quality
from qbench.search.regions import Region, regions_of
from qbench.search.repairs import Repair
from qbench.search.subject import Subject

if TYPE_CHECKING:
    import pandas as pd

RUNGS = (4, 16)
"""Samples of the calibration data that regions are tried on: all on the first so many, the best on more."""

_REGIONS = 3
_LEAST_DB = 0.1


@dataclass(frozen=True)
class Advice:
    """One repair and what was measured of it.

    Parameters
    ----------
    repair
        What to do; ``session.apply(advice.repair)`` does it.
    probe_gain_db
        By how much it raises the output's SQNR on the samples that it was found on.
    before, after, exact
        On the data that results are checked on: as it is now, after the repair, and the float model.
    cost, cost_before
        Measured by the program.
    worth, worth_before
        On the samples that it was found on.
    """

    repair: Repair
    probe_gain_db: float
    before: Quality
    after: Quality
    exact: Quality
    cost: Cost
    cost_before: Cost
    worth: Worth
    worth_before: Worth

    @property
    def score(self) -> float:
        """Share of what was lost that comes back, for the time that it costs; on the samples that choices see.

        Where there is no metric, of the error's power on all samples: those that it was found on are few.
        """
        now, then, best = (
            quality.metric if quality.chosen_on is None else quality.chosen_on
            for quality in (self.before, self.after, self.exact)
        )
        dearer = max(0.0, self.worth.effort / self.worth_before.effort - 1)
        if not math.isfinite(best) or best <= now:
            return (1 - noise(self.after.sqnr_db) / noise(self.before.sqnr_db)) / (PRICE + dearer)
        return min((then - now) / (best - now), 1.0) / (PRICE + dearer)


@set_aside()
def advise(
    subject: Subject, config: QuantConfig, attribution: Attribution, progress: Progress | None = None
) -> tuple[Advice, ...]:
    """Find repairs of a config, measure them, rank them.

    Parameters
    ----------
    subject
        The model and its data. Repairs are found on calibration data, and ranked on the half of the evaluation data
        that choices are made on (all of it, where the metric knows its own truths).
    config, attribution
        What to repair, and where it loses.
    progress
        Told what is done, of how much.
    """
    subject.check_metric(config)
    rung = subject.rung(RUNGS[-1])
    coming = [
        *regional(subject, config, attribution, progress),
        *global_repairs(config, subject.can_round(config), subject.can_equalize(config)),
        *spare_repairs(subject, config),
    ]
    now, *then = rung([config, *(repair.apply(config) for repair in coming)])
    gains = list[tuple[Repair, Worth]]()
    for repair, worth in zip(coming, then, strict=True):
        helps = subject.metric is not None and subject.probed(repair.apply(config)) > subject.probed(config)
        if helps or worth.sqnr_db > now.sqnr_db + _LEAST_DB:
            gains.append((repair, worth))
    before, exact, cost = subject.quality(config), subject.float_quality, subject.cost(config)
    found = dict[tuple[str, float, Quality], Advice]()
    for done, (repair, worth) in enumerate(sorted(gains, key=lambda gain: (gain[1].effort, len(gain[0].where)))):
        if progress is not None:
            progress(done, len(gains))
        repaired = repair.apply(config)
        after = subject.quality(repaired)
        alike = repair.what, worth.sqnr_db, after  # to the last bit: what more is named gives nothing more
        if alike not in found:
            measured = before, after, exact, subject.cost(repaired), cost
            found[alike] = Advice(repair, gain_db(now, worth), *measured, worth, now)
    return tuple(sorted(found.values(), key=lambda advice: -advice.score))


def regional(
    subject: Subject, config: QuantConfig, attribution: Attribution, progress: Progress | None = None
) -> list[Repair]:
    """Repairs of the regions that cost most together: in float, and in 16 bits; what is not needed is left out."""
    trials = _trials(subject, config, attribution)
    found = dict[tuple[str, tuple[str, ...]], Repair]()
    needed = [(joint.groups, _said(joint)) for joint in joint_gains(*trials, _REGIONS, progress)]
    whole = [(region.groups, f"{region.kind} as a whole") for region in promising(*trials, _REGIONS)]
    for groups, why in (*needed, *whole):
        for repair in group_repairs(subject, config, groups, why):
            found.setdefault((repair.what, repair.where), repair)
    for groups, _ in needed:
        for repair in cheap_repairs(subject, config, groups):
            found.setdefault((repair.what, repair.where), repair)
    return list(found.values())


def whole_regions(subject: Subject, config: QuantConfig, attribution: Attribution, most: int) -> list[Region]:
    """The regions that do best as they are, and the first few groups: a metric may see what the output's SQNR does not.

    Nothing behind a stem can make up for what it loses.
    """
    trials = _trials(subject, config, attribution)
    stems = [region for region in trials[1] if region.kind == "prefix" and len(region.groups) <= most]
    return list(dict.fromkeys((*promising(*trials, most), *stems)))


def _trials(
    subject: Subject, config: QuantConfig, attribution: Attribution
) -> tuple[QuantConfig, Sequence[Region], Edit, Sequence[Rung]]:
    """What regions are tried with."""

    def edit(config: QuantConfig, groups: Sequence[str]) -> QuantConfig:
        return in_float(subject.prepared, groups, "").apply(config)

    return config, regions_of(subject.prepared, attribution), edit, [subject.rung(samples) for samples in RUNGS]


def advice_table(advice: Iterable[Advice]) -> pd.DataFrame:
    """One row for each repair, the best first.

    Columns: ``repair`` (what ``session.apply`` takes), ``what``, ``where``, ``gain_db_probe`` (on the samples that it
    was found on), ``gain_db`` and ``gain_metric`` (on all), ``gain_chosen_on`` and ``gain_held_back`` (of the metric on
    the samples that the ranking saw, and on those that it did not), ``metric``, ``sqnr_db``, ``ms``, ``bytes`` (all
    after the repair), ``more_ms``, ``more_bytes``, ``why``.
    """
    import pandas as pd  # takes longer to import than all of qbench

    rows = [
        {
            "repair": one.repair,
            "what": one.repair.what,
            "where": ", ".join(one.repair.where),
            "gain_db_probe": one.probe_gain_db,
            "gain_db": _less(one.after.sqnr_db, one.before.sqnr_db),
            "gain_metric": one.after.metric - one.before.metric,
            "gain_chosen_on": _less(one.after.chosen_on, one.before.chosen_on),
            "gain_held_back": _less(one.after.held_back, one.before.held_back),
            "metric": one.after.metric,
            "sqnr_db": one.after.sqnr_db,
            "ms": one.cost.ms,
            "bytes": one.cost.bytes,
            "more_ms": one.cost.ms - one.cost_before.ms,
            "more_bytes": one.cost.bytes - one.cost_before.bytes,
            "why": one.repair.why,
        }
        for one in advice
    ]
    columns = (
        "repair what where gain_db_probe gain_db gain_metric gain_chosen_on gain_held_back metric sqnr_db ms bytes "
        "more_ms more_bytes why"
    )
    return pd.DataFrame(rows, columns=columns.split())


def _said(joint: Joint) -> str:
    if math.isinf(joint.gain_db):
        return f"{joint.region.kind}: " + ("exact" if joint.gain_db == joint.after.sqnr_db else "a number, not NaN")
    together = f"{joint.region.kind}: {joint.gain_db:.1f} dB"
    return together if len(joint.groups) == 1 else f"{together} together, {_sum(joint)} as the sum of each alone"


def _sum(joint: Joint) -> str:
    total = sum(joint.alone_db)
    return f"{total:.1f} dB" if math.isfinite(total) else "exact"


def _less(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before
