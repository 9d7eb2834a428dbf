"""Calibration data divided in two: what ranges are taken from, and what is judged by them."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import pairwise

from qbench.calibration.collect import collect
from qbench.calibration.counter import merged
from qbench.calibration.statistics import Statistics
from qbench.data.dataset import Dataset
from qbench.evaluate.chances import chances_of
from qbench.evaluate.exponentials import exponential_of
from qbench.ir.graph import Graph
from qbench.ir.memo import Memo
from qbench.progress import Cancel
from qbench.search.cost import products
from qbench.search.nearness import Exact

_PART, _SEEN, _CANDIDATES = 4, 64, 8
"""This part of the data is judged on; so many samples say ranges; the loudest are found among so many at least."""
_TRIED = 3
"""Results kept of each layer: in 8 bits and in 16, and in float."""
_FEW = 16
"""Of no more samples than these each is judged: one that is unlike the others is a good part of them."""
_MANY, _MOST_MACS = 24, 1 << 35
"""Samples that tell how good choices are, and products that they take together at most."""


def needed_of_choices(graph: Graph, sizes: Mapping[str, int]) -> int:
    """How many samples tell how good choices are, each of which is right or wrong, and exponentials, the smallest of
    which count as the largest do; 0 for outputs that are neither.

    Parameters
    ----------
    graph
        A float graph.
    sizes
        What is open in it, in a usual sample.
    """
    if not any(chances_of(graph, name) or exponential_of(graph, name) for name in graph.outputs):
        return 0
    return min(_MANY, _MOST_MACS // max(1, products(graph, sizes)))


@dataclass(frozen=True, eq=False)
class Side:
    """One way to divide the data.

    Parameters
    ----------
    statistics
        Of the samples that say ranges, by tensor.
    few, all
        What the float model answers to the others: to the few in which it finds most, and to all that are looked at.
    memo
        Of what is quantized by these statistics.
    """

    statistics: Mapping[str, Statistics]
    few: Exact
    all: Exact
    memo: Memo = field(default_factory=lambda: Memo(_TRIED))


def sides_of(
    graph: Graph,
    data: Dataset,
    tensors: Iterable[str],
    few: int,
    both: bool = True,
    executor: Executor | None = None,
    cancel: Cancel | None = None,
) -> list[Side]:
    """The last quarter of the data judged by ranges of the rest, then the first one, then the others where samples are
    few; where there are fewer than four, all of them by their own ranges.

    Parameters
    ----------
    graph
        A float graph.
    data
        What it eats.
    tensors
        What ranges are taken of.
    few
        Samples of each side that trials run on.
    both
        False where a sample takes long: one side, and no sample more than those few.
    executor, cancel
        Where ranges are taken, and to stop it.

    Raises
    ------
    Cancelled
        `cancel` was set.
    """
    count = data.pieces
    held_back = count // _PART
    ends = (0, held_back, count // 2, count - held_back, count) if held_back else (0, count)
    parts = [range(*each) for each in pairwise(ends)]
    held = parts[::-1] if count <= _FEW else [parts[-1], parts[0]]
    split = [([part for part in parts if part != own] or parts, own) for own in (held if both else held[:1])]
    judged = [data.spread(max(few, _CANDIDATES) if both else few, own) for _, own in split]
    most = {part: max(1, _SEEN * len(part) // (count - held_back)) for rest, _ in split for part in rest}
    seen = {part: data.spread(number, part) for part, number in most.items()}
    wanted = sorted({number for numbers in (*seen.values(), *judged) for number in numbers})
    pieces = dict(zip(wanted, data.pick(wanted), strict=True))  # data in files is read once
    names = [*tensors]
    found = {
        part: collect(graph, [pieces[at] for at in numbers], tensors=names, executor=executor, cancel=cancel)
        for part, numbers in seen.items()
    }
    exact, before = Exact.of(graph, [pieces[at] for numbers in judged for at in numbers]), 0
    sides = list[Side]()
    for (rest, _), numbers in zip(split, judged, strict=True):
        own = range(before, before := before + len(numbers))
        _, statistics = merged(*((0, found[part]) for part in rest))
        sides.append(Side(statistics, exact.loudest(own, few), exact.loudest(own, len(own))))
    return sides
