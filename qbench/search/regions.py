"""Regions of a network whose errors may act together: beginnings, ends, stretches, blocks, branches."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from qbench.ir.graph import Graph
from qbench.passes.groups import Group, find_groups
from qbench.search.attribution import Attribution

Kind = Literal["prefix", "suffix", "window", "block", "branch", "falls"]
_LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16)
_WINDOWS = (2, 4)
_FALLS = (1, 2, 3, 4, 6, 8)
_MOST = 48


@dataclass(frozen=True, slots=True)
class Region:
    """Some fused groups of a network.

    Parameters
    ----------
    kind
        ``prefix`` and ``suffix``: the first or last so many groups; ``window``: so many that follow each other in
        graph order; ``block``: those between two values that everything passes through; ``branch``: one of the ways
        from a value to where they join again; ``falls``: where most is lost for good.
    groups
        Names of the first node of each, in execution order.
    """

    kind: Kind
    groups: tuple[str, ...]

    def __str__(self) -> str:
        span = self.groups[0] if len(self.groups) == 1 else f"{self.groups[0]} to {self.groups[-1]}"
        return f"{self.kind} {span} ({len(self.groups)})"


def groups_of(prepared: Graph) -> dict[str, tuple[str, ...]]:
    """The nodes of each fused group, by the name of its first."""
    return {group.head.name: tuple(node.name for node in group.nodes) for group in find_groups(prepared)}


def regions_of(prepared: Graph, attribution: Attribution) -> tuple[Region, ...]:
    """The regions worth a trial, each set of groups once; those where most is lost and those at the start come first.

    Parameters
    ----------
    prepared
        The float graph.
    attribution
        Of the config to improve: groups that lose nothing by themselves make no region.
    """
    groups = find_groups(prepared)
    names = [group.head.name for group in groups]
    lossy = {step.name for step in attribution.steps if step.own_db is None or step.own_db < float("inf")}
    own = [step.name for step in attribution.falls if step.cause == "own"]
    order = {name: number for number, name in enumerate(names)}
    found: dict[tuple[str, ...], Region] = {}

    def add(kind: Kind, members: Iterable[str]) -> None:
        kept = tuple(sorted((name for name in members if name in lossy), key=order.__getitem__))
        if kept:
            found.setdefault(kept, Region(kind, kept))

    counted = [name for name in names if name in lossy]
    for length in _FALLS:
        add("falls", own[:length])
        add("falls", [step.name for step in attribution.falls[:length]])
    for length in _LENGTHS:
        add("prefix", counted[:length])
        add("suffix", counted[-length:])
    for step in attribution.falls[: _FALLS[-1]]:
        at = order[step.name]
        for length in _WINDOWS:
            add("window", names[max(0, at - length + 1) : at + 1])
            add("window", names[max(0, at - length // 2) : at + length - length // 2])
    lasting = {step.name: step.lasting_db for step in attribution.steps}
    parts = sorted(_structure(prepared, groups), key=lambda part: -sum(lasting[name] for name in part[1]))
    for kind, members in parts:
        add(kind, members)
    return tuple(found.values())[:_MOST]


def _structure(prepared: Graph, groups: tuple[Group, ...]) -> Iterator[tuple[Kind, list[str]]]:
    """Blocks: what lies between two cuts that one value crosses; and within each the branches between fork and join."""
    last = {value: number for number, group in enumerate(groups) for node in group.nodes for value in node.inputs}
    last |= dict.fromkeys(prepared.outputs, len(groups))
    alive, start = set[str](), 0
    for number, group in enumerate(groups):
        alive = {value for value in (*alive, *group.outputs) if last.get(value, -1) > number}
        if len(alive) <= 1:
            block = groups[start : number + 1]
            start = number + 1
            if len(block) > 1:
                yield "block", [member.head.name for member in block]
                for branch in _branches(prepared, block):
                    yield "branch", branch


def _branches(prepared: Graph, block: tuple[Group, ...]) -> Iterator[list[str]]:
    """Chains of groups of which each alone reads the one before it."""
    heads = {node.name: group for group in block for node in group.nodes}
    taken = set[str]()
    for group in block:
        chain = list[str]()
        following: Group | None = group
        while following is not None and following.head.name not in taken:
            taken.add(following.head.name)
            chain.append(following.head.name)
            readers = {
                heads[reader.name].head.name
                for value in following.outputs
                for reader in prepared.consumers[value]
                if reader.name in heads
            }
            following = heads[readers.pop()] if len(readers) == 1 else None
        if 1 < len(chain) < len(block):
            yield chain
