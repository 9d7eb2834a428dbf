"""Pairing the items of two lists by what identifies them, in time proportional to their number."""

from collections import defaultdict
from collections.abc import Hashable, Sequence

Pair = tuple[int | None, int | None]
Keys = Sequence[Sequence[Hashable]]


def align(left: Sequence[Keys], right: Sequence[Keys]) -> list[Pair]:
    """Pair items that share a key.

    Parameters
    ----------
    left, right
        For each item its keys by level, the surest level first. An item is paired with the first one of the other side
        that is still alone and shares a key at the level, before any pair is made at the next level.

    Returns
    -------
    list of Pair
        Indexes (left, right) with None where an item has no counterpart: all items of `right` in their order, each
        item that only `left` has after the counterpart of the item that it followed there.
    """
    levels = max((len(keys) for keys in (*left, *right)), default=0)
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for level in range(levels):
        waiting: defaultdict[Hashable, list[int]] = defaultdict(list)
        for b in reversed(range(len(right))):
            if b not in taken and level < len(right[b]):
                for key in right[b][level]:
                    waiting[key].append(b)
        for a, keys in enumerate(left):
            if a in partner or level >= len(keys):
                continue
            found = [b for b in (_first(waiting[key], taken) for key in keys[level] if key in waiting) if b is not None]
            if found:
                partner[a] = min(found)
                taken.add(partner[a])
    return _merged(len(left), len(right), partner)


def _first(candidates: list[int], taken: set[int]) -> int | None:
    while candidates and candidates[-1] in taken:
        candidates.pop()
    return candidates[-1] if candidates else None


def _merged(left: int, right: int, partner: dict[int, int]) -> list[Pair]:
    followers: defaultdict[int, list[Pair]] = defaultdict(list)
    anchor = -1
    for a in range(left):
        anchor = partner.get(a, anchor)
        if a not in partner:
            followers[anchor].append((a, None))
    origin = {b: a for a, b in partner.items()}
    merged = followers[-1]
    for b in range(right):
        merged += [(origin.get(b), b), *followers[b]]
    return merged
