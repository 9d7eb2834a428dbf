"""Calibration data divided in two."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.data.dataset import Dataset
from qbench.ir.build import build
from qbench.ir.graph import Node
from qbench.search import sides as sides_module
from qbench.search.sides import Side, needed_of_choices, sides_of
from tests.networks import mlp

GRAPH = mlp(sizes=(4, 3))
LEVELS = np.arange(1, 21, dtype=np.float32)  # each sample has a range of its own


def sides(samples: int = 20, few: int = 1, both: bool = True) -> list[Side]:
    x = np.repeat(LEVELS[:samples, None], 4, 1)
    return sides_of(GRAPH, Dataset(GRAPH, x), GRAPH.inputs, few, both)


def seen(side: Side) -> tuple[list[float], list[float], tuple[float, float]]:
    (name,) = GRAPH.inputs
    few, all_ = ([float(feed[name].max()) for feed in exact.feeds] for exact in (side.few, side.all))
    return few, all_, (side.statistics[name].min, side.statistics[name].max)


def test_the_last_and_the_first_quarter_are_judged_by_ranges_of_the_rest() -> None:
    last, first = map(seen, sides())
    assert last[1:] == ([16, 17, 18, 19, 20], (1, 15))
    assert first[1:] == ([1, 2, 3, 4, 5], (6, 20))
    assert len(last[0]) == len(first[0]) == 1 and last[0][0] in last[1] and first[0][0] in first[1]


@pytest.mark.parametrize("samples", range(4, 17))
def test_of_few_samples_each_is_judged_by_ranges_of_others(samples: int) -> None:
    levels = {*LEVELS[:samples].tolist()}
    judged = [seen(side)[1:] for side in sides(samples)]
    assert sorted(level for own, _ in judged for level in own) == sorted(levels)
    for own, extremes in judged:
        rest = levels - {*own}
        assert extremes == (min(rest), max(rest))


def test_one_side_with_no_more_than_the_few_where_a_sample_takes_long() -> None:
    (only,) = map(seen, sides(both=False))
    assert len(only[0]) == len(only[1]) == 1 and only[2] == (1, 15)


def test_of_choices_more_samples_are_judged_on_as_time_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = build("sums", GRAPH.input_types(), GRAPH.nodes[0].outputs, GRAPH.nodes[:1], GRAPH.constants)
    assert needed_of_choices(sums, {}) == 0
    assert needed_of_choices(GRAPH, {}) == 24
    grown = Node("price", "exp", sums.outputs, ("price",))
    prices = build("prices", GRAPH.input_types(), grown.outputs, [*sums.nodes, grown], GRAPH.constants)
    assert needed_of_choices(prices, {}) == 24
    monkeypatch.setattr(sides_module, "_MOST_MACS", 5 * 12)
    assert needed_of_choices(GRAPH, {}) == 5, "of 4 times 3 products"


def test_too_few_samples_are_judged_by_their_own_ranges() -> None:
    (only,) = map(seen, sides(samples=3, few=3))
    assert only == ([1, 2, 3], [1, 2, 3], (1, 3))
