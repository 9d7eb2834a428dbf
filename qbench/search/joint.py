"""What regions cost together: many tried on few samples, the best of them on more, then what is not needed left out.

Errors act jointly: three layers of a stem may cost a detector a quarter of its precision, and each of them alone
nothing. So regions are measured whole. Successive halving (K. Jamieson, A. Talwalkar, Non-stochastic Best Arm
Identification and Hyperparameter Optimization, AISTATS 2016) spends the samples on those that promise most.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from qbench.progress import Progress
from qbench.quant.config import QuantConfig
from qbench.search.judge import Worth
from qbench.search.regions import Region

PRICE = 0.05
"""Part of the network's time that any change is taken to cost."""

Edit = Callable[[QuantConfig, Sequence[str]], QuantConfig]
"""A config with the groups of these names repaired."""

Rung = Callable[[Sequence[QuantConfig]], Sequence[Worth]]
"""Measures configs on some samples."""

_KEPT = 4  # one in so many regions goes on to more samples
_SHARE = 0.75  # of the decibels that must stay when groups are left out
_MOST = 24  # groups of a region from which single ones are left out


@dataclass(frozen=True, slots=True)
class Joint:
    """What a region gives back when all of it is repaired.

    Parameters
    ----------
    region
        What was tried first.
    groups
        What is needed of it.
    before, after
        Without the repair, and with it.
    alone_db
        By how many dB each of `groups` raises the output's SQNR if nothing else is repaired.
    """

    region: Region
    groups: tuple[str, ...]
    before: Worth
    after: Worth
    alone_db: tuple[float, ...]

    @property
    def gain_db(self) -> float:
        """By how much the output's SQNR rises."""
        return gain_db(self.before, self.after)

    @property
    def score(self) -> float:
        """Share of the error's power that goes, for the time that it costs."""
        return score(self.before, self.after)


def score(before: Worth, after: Worth) -> float:
    """Share of the error's power that a change takes away, over the share of time that it adds."""
    dearer = max(0.0, after.effort / before.effort - 1)
    return (1 - after.noise / before.noise) / (PRICE + dearer)


def gain_db(before: Worth, after: Worth) -> float:
    """By how many dB the output's SQNR rises; infinite where it was not a number, or is exact now."""
    return 0.0 if after.sqnr_db == before.sqnr_db else after.sqnr_db - before.sqnr_db


def joint_gains(
    config: QuantConfig,
    regions: Iterable[Region],
    edit: Edit,
    rungs: Sequence[Rung],
    most: int = 4,
    progress: Progress | None = None,
) -> tuple[Joint, ...]:
    """The regions whose repair gives most for its price, the best first.

    Parameters
    ----------
    config
        To start from.
    regions
        To try.
    edit
        What a repair makes of a config.
    rungs
        How configs are measured, on ever more samples; each is given a quarter of the regions of the one before.
    most
        How many regions to give back.
    progress
        Told the rungs done, and their number.
    """
    found = dict[tuple[str, ...], Joint]()
    for region in promising(config, regions, edit, rungs, most, progress):
        joint = _needed(config, region, edit, rungs[0], rungs[-1])
        if joint.gain_db > 0:
            found.setdefault(joint.groups, joint)
    return tuple(sorted(found.values(), key=lambda joint: -joint.score))


def promising(
    config: QuantConfig,
    regions: Iterable[Region],
    edit: Edit,
    rungs: Sequence[Rung],
    most: int,
    progress: Progress | None = None,
) -> list[Region]:
    """The regions that do best when they are measured as they are; arguments as for :func:`joint_gains`."""
    left = list(regions)
    for number, rung in enumerate(rungs):
        before, *after = rung([config, *(edit(config, region.groups) for region in left)])
        ranked = sorted(zip(left, after, strict=True), key=lambda pair: -score(before, pair[1]))
        last = number == len(rungs) - 1
        left = [region for region, _ in ranked[: most if last else max(most, len(ranked) // _KEPT)]]
        if progress is not None:
            progress(number + 1, len(rungs))
    return left


def _needed(config: QuantConfig, region: Region, edit: Edit, few: Rung, rung: Rung) -> Joint:
    """The region without the groups whose part in the gain is not worth their price: the last ones are asked first."""
    groups = region.groups
    if 1 < len(groups) <= _MOST:
        before, after = rung([config, edit(config, groups)])
        wanted = _SHARE * gain_db(before, after)
        for name in reversed(region.groups):
            fewer = tuple(group for group in groups if group != name)
            (worth,) = rung([edit(config, fewer)]) if fewer else (after,)
            if not fewer or gain_db(before, worth) < wanted:
                continue
            if score(before, worth) > score(before, after):  # what follows its neighbours is part of it
                groups, after = fewer, worth
    before, after = rung([config, edit(config, groups)])
    alone = few([config, *(edit(config, (group,)) for group in groups)])
    return Joint(region, groups, before, after, tuple(gain_db(alone[0], worth) for worth in alone[1:]))
