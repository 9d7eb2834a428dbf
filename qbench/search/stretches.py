"""Stretches of a network: what noise each makes alone, and which to spare so that all others may make theirs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from qbench.passes.groups import Group

Noise = Mapping[str, float]
"""Error over signal, by output."""


@dataclass(frozen=True, eq=False)
class Stretch:
    """Fused groups that follow each other; the noise that they alone make, and what time is saved by making it."""

    groups: Sequence[Group]
    noise: Noise
    saved: float

    def worth(self, most: Noise) -> float:
        """The share of the noise that may be which it makes, for the time that it saves."""
        return sum(min(self.noise[name] / each, 1) for name, each in most.items()) / self.saved


@dataclass(frozen=True, eq=False)
class Apart:
    """All of a network in stretches.

    Parameters
    ----------
    stretches
        Each measured alone.
    room
        What noise they may make together.
    """

    stretches: Sequence[Stretch]
    room: Noise

    def spared(self, share: float = 1.0) -> list[Stretch]:
        """Those without which the others keep below a share of what may be, for little time."""
        room = {name: share * each for name, each in self.room.items()}
        left, kept = [*self.stretches], list[Stretch]()
        while over := _excess(left, room):
            best = max(left, key=lambda stretch: stretch.worth(over))
            left.remove(best)
            kept.append(best)
        for stretch in sorted(kept, key=lambda stretch: -stretch.saved):  # the others may be enough by now
            if not _excess([*left, stretch], room):
                left.append(stretch)
                kept.remove(stretch)
        return kept


def groups_of(stretches: Iterable[Stretch]) -> list[Group]:
    """All of them, stretch by stretch."""
    return [group for stretch in stretches for group in stretch.groups]


def worst_of(each: Iterable[Noise]) -> Noise:
    """The most of every output."""
    found = [*each]
    return {name: max(noise[name] for noise in found) for name in found[0]}


def _excess(some: Sequence[Stretch], allowed: Noise) -> Noise:
    sums = {name: sum(stretch.noise[name] for stretch in some) - most for name, most in allowed.items()}
    return {name: over for name, over in sums.items() if over > 0}
