from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.data.dataset import Chunk, Dataset
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.keys import value_keys
from qbench.evaluate.partial import Partial, partial_run
from qbench.ir.build import rebuild
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph
from qbench.ir.qparams import QParams
from qbench.runtime.programs import Programs
from tests.networks import mlp, node, samples

GRAPH = mlp()
VALUES = [name for name in GRAPH.types if name not in GRAPH.constants]


def chunk(graph: Graph = GRAPH) -> Chunk:
    return next(Dataset(graph, samples(4)).chunks())


def edited(graph: Graph, constant: str, factor: float = 2.0) -> Graph:
    with np.errstate(over="ignore"):
        array = graph.constants[constant].array * np.float32(factor)
    return rebuild(graph, constants=dict(graph.constants) | {constant: Constant(array)})


@given(st.lists(st.tuples(st.lists(st.sampled_from(VALUES)), st.integers(0, 7)), max_size=4), st.integers(0, 2000))
def test_gives_what_a_full_run_gives_whatever_the_cache_holds(asked: list[tuple[list[str], int]], budget: int):
    cache, data = ValueCache(budget), chunk()
    constants = [None, *(name for name in GRAPH.constants)]
    for wanted, edit in asked:
        constant = constants[edit % len(constants)]
        graph = GRAPH if constant is None else edited(GRAPH, constant)
        wanted.sort(key=VALUES.index)
        cache.begin()
        programs = Programs(graph, keep=VALUES)
        found = partial_run(programs, value_keys(graph), data, wanted, cache, set(VALUES))
        expected = programs.of(data.feeds).run(data.feeds, keep=VALUES)
        for name in wanted:
            assert np.array_equal(found.arrays[name], expected[name])


def steps(graph: Graph, cache: ValueCache) -> list[str]:
    found = partial_run(Programs(graph, VALUES), value_keys(graph), chunk(), ["y"], cache, set(VALUES))
    return [node.name for node in graph.nodes if node.name in found.nodes]


def test_runs_what_an_edit_made_stale_and_nothing_else():
    cache = ValueCache(1 << 20)
    assert steps(GRAPH, cache) == [node.name for node in GRAPH.nodes]
    assert steps(GRAPH, cache) == []
    assert steps(edited(GRAPH, "dense_2.bias"), cache) == ["bias_2", "y"]
    assert steps(edited(GRAPH, "dense_1.weight"), cache) == ["dense_1", "bias_1", "relu_1", "dense_2", "bias_2", "y"]
    assert steps(GRAPH, cache) == []


def test_keys_are_of_the_meaning_and_not_of_the_name():
    keys = value_keys(GRAPH)
    renamed = rebuild(
        GRAPH,
        nodes=[
            *GRAPH.nodes[:-1],
            node("nn.softmax", ["bias_2"], "other"),
            node("nn.softmax", ["bias_2"], "y", axis=0),
            node("nn.softmax", ["bias_2"], "q"),
        ],
        outputs=["y", "other", "q"],
        qparams=FrozenMap({"q": QParams(1.0, 0, "int8")}),
    )
    other = value_keys(renamed)
    assert other["other"] == keys["y"]
    assert len({other["other"], other["y"], other["q"]}) == 3
    assert {name: other[name] for name in VALUES if name != "y"} == {name: keys[name] for name in VALUES if name != "y"}


def test_a_value_that_is_not_finite_is_made_anew() -> None:
    graph = edited(GRAPH, "dense_0.bias", np.inf)
    cache = ValueCache(1 << 20)
    for _ in range(2):
        found = partial_run(Programs(graph, VALUES), value_keys(graph), chunk(), ["bias_0", "y"], cache, set(VALUES))
        assert np.isinf(found.arrays["bias_0"]).any()


def test_what_is_known_is_not_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, data, keys = ValueCache(1 << 20), chunk(), value_keys(GRAPH)
    programs, every = Programs(GRAPH, VALUES), {"relu_1": 3}

    def run() -> Partial:
        return partial_run(programs, keys, data, ["y"], cache, ["y"], sample=every)

    first = run()
    monkeypatch.setattr(programs, "of", lambda feeds: pytest.fail("planned"))
    again = run()
    assert not again.nodes
    np.testing.assert_array_equal(again.arrays["y"], first.arrays["y"])
    np.testing.assert_array_equal(again.samples["relu_1"], first.samples["relu_1"])
