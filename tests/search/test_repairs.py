"""Repairs that were measured: the layers that spoil a network together come first, and one call repairs it."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from qbench.data.dataset import Dataset
from qbench.errors import Cancelled, ConfigError, DataError
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.outputs import outputs_of
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.types import TensorType
from qbench.quant.config import QuantConfig
from qbench.runtime.interpreter import call
from qbench.search.advice import Advice
from qbench.search.cost import Cost
from qbench.search.joint import gain_db, joint_gains, score
from qbench.search.judge import Worth
from qbench.search.proposals import cheap_repairs, global_repairs
from qbench.search.quality import Quality
from qbench.search.regions import Region, groups_of, regions_of
from qbench.search.repairs import (
    Calibrate,
    CorrectBias,
    Equalize,
    KeepFloat,
    MeasureRange,
    PerChannel,
    Repair,
    RoundWeights,
    SplitScales,
)
from qbench.session.session import Session
from tests.networks import node
from tests.search import spread
from tests.search.planted import CULPRITS, GRAPH, X, session


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame]:
    """A session's folder, and the repairs that were found in it."""
    folder = tmp_path_factory.mktemp("repairs") / "s"
    return folder, session(path=folder).repairs(progress=False)


def test_the_layers_that_spoil_it_together_are_found_and_repaired_by_one_edit(found: tuple[Path, pd.DataFrame]):
    s, table = session(), found[1]
    before = s.run(progress=False).output.sqnr_db
    assert isinstance(table.repair[0], RoundWeights)  # costs no time: the weights are what spoils it
    both = [isinstance(repair, KeepFloat) and {*CULPRITS} <= {*repair.where} for repair in table.repair]
    first = table[both].iloc[0]
    assert "together" in first.why
    assert len(first.repair.where) <= len(s.prepared.nodes) / 2
    s.apply(first.repair)
    after = s.run(progress=False).output.sqnr_db
    assert before is not None
    assert after is not None
    assert after - before == pytest.approx(first.gain_db, abs=1e-3)  # trials run fused
    assert first.sqnr_db == pytest.approx(after, abs=1e-3)
    assert s.history.edits[-1].label == str(first.repair)
    s.undo()
    assert s.config == s.history.edits[0].config


def test_an_executor_finds_the_same(found: tuple[Path, pd.DataFrame]):
    with ThreadPoolExecutor(2) as pool:
        table = session().repairs(progress=False, executor=pool)
    assert [*table.repair] == [*found[1].repair]
    assert [*table.gain_db_probe] == [*found[1].gain_db_probe]


def test_the_users_metric_ranks_and_both_halves_are_shown():
    def likeness(outputs: dict[str, np.ndarray], y: np.ndarray) -> float:
        return float(outputs["y"][np.arange(len(y)), y].mean())

    table = session().repairs(likeness, progress=False)
    assert table.gain_metric.notna().all()
    halves = (table.gain_chosen_on + table.gain_held_back) / 2
    assert np.allclose(halves, table.gain_metric, atol=1e-6)


def test_a_metric_that_chooses_nothing():
    with pytest.raises(DataError, match="is constant"):
        session().repairs(lambda outputs, y: 1.0, progress=False)


def test_cancelled():
    stop = threading.Event()
    stop.set()
    with pytest.raises(Cancelled):
        session().repairs(progress=False, cancel=stop)


def test_trials_are_not_repeated(found: tuple[Path, pd.DataFrame], monkeypatch: pytest.MonkeyPatch):
    def never(*_: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr("qbench.search.subject.judged", lambda judge, trials, *_: [never() for _ in trials])
    again = session(path=found[0]).repairs(progress=False)
    assert [*again.repair] == [*found[1].repair]


def test_what_is_not_needed_is_left_out_and_interaction_is_told():
    effect = {frozenset(): 0.0, frozenset("ab"): 10.0}

    def rung(configs):
        found = []
        for config in configs:
            kept = frozenset(config.layers)
            gain = 10.0 if {"a", "b"} <= kept else 0.5 * len(kept & {"a", "b"})
            found.append(Worth(5.0 + gain, 100.0 + 2 * len(kept)))
        return found

    def edit(config: QuantConfig, groups):
        return config.override_many("layers", groups, keep_float=True)

    regions = [Region("prefix", tuple("abcd")), Region("window", tuple("cd")), Region("window", tuple("a"))]
    (first, *_) = joint_gains(QuantConfig(), regions, edit, [rung, rung])
    assert first.groups == ("a", "b")
    assert first.gain_db == effect[frozenset("ab")]
    assert first.alone_db == (0.5, 0.5)


@pytest.mark.parametrize(("before", "after", "gain"), [(-math.inf, 12.0, math.inf), (-math.inf, -math.inf, 0.0)])
def test_gain_where_the_output_was_no_number(before: float, after: float, gain: float):
    assert gain_db(Worth(before, 1.0), Worth(after, 1.0)) == gain
    assert score(Worth(before, 1.0), Worth(after, 1.0)) == pytest.approx(20.0 if gain else 0.0)


def test_a_repair_is_worth_what_it_gives_on_all_the_data():
    def advice(on_few: float, on_all: float) -> Advice:
        before, after, exact = (Quality(db, None, None, db) for db in (20.0, 20.0 + on_all, math.inf))
        worths = Worth(20.0 + on_few, 1.0), Worth(20.0, 1.0)
        return Advice(KeepFloat("", ("a",)), on_few, before, after, exact, Cost(1.0, 1), Cost(1.0, 1), *worths)

    assert advice(4.0, -0.7).score < 0 < advice(4.0, 0.5).score < advice(1.0, 0.6).score < advice(0.5, 2.0).score


def test_regions_are_sets_of_groups_that_lose_something():
    s = session()
    regions = regions_of(s.prepared, s.attribution())
    names = groups_of(s.prepared)
    assert len({region.groups for region in regions}) == len(regions)
    assert all(region.groups and {*region.groups} <= {*names} for region in regions)
    assert {region.kind for region in regions} >= {"prefix", "suffix"}


def test_global_repairs_change_the_config():
    config = QuantConfig()
    repairs = global_repairs(config)
    assert all(repair.apply(config) != config for repair in repairs)
    assert CorrectBias(repairs[-1].why, on=False) in repairs


def test_channels_of_uneven_scale_are_equalized_first():
    """By the first line, with weights by channel, too; where no two layers can, nobody proposes it."""
    data = np.tanh(np.random.default_rng(0).normal(size=(128, spread.WIDTH))).astype(np.float32)
    uneven = Session(spread.network(4), data, data, preset="int8")
    lost = uneven.run(progress=False).output.sqnr_db
    first = uneven.repairs(progress=False).repair[0]
    assert isinstance(first, Equalize) and not first.where
    uneven.apply(first)
    assert (uneven.run(progress=False).output.sqnr_db or 0) > 26 > 20 > (lost or 0)
    assert not any(isinstance(repair, Equalize) for repair in global_repairs(QuantConfig()))


def test_outputs_are_the_models():
    s = session()
    data, quantized = Dataset(GRAPH, X), s.quantized()
    exact = outputs_of(quantized, "float", data, ValueCache(1 << 20))["y"]
    assert np.allclose(exact, call(GRAPH, X), atol=1e-5)
    made = outputs_of(quantized, "quantized", data, ValueCache(0))["y"]
    assert np.allclose(made, call(quantized.graph, X), atol=1e-5)  # softmax is in float


def test_careful_rounding_is_proposed_for_coarse_weights_only():
    coarse = QuantConfig().with_value("weights.dtype", "int4")
    for config, proposed in (
        (coarse, True),
        (QuantConfig(), False),
        (coarse.with_value("weights.rounding", "sequential"), False),
    ):
        assert any(isinstance(repair, RoundWeights) for repair in global_repairs(config)) is proposed
    rounded = Session(GRAPH, X, config=coarse).repairs(progress=False)
    rows = [row for row in rounded.itertuples() if isinstance(row.repair, RoundWeights)]
    assert any(not row.repair.where for row in rows)
    assert all(row.gain_db_probe > 0 for row in rows)


def proposed(graph: Graph, data: np.ndarray, config: QuantConfig, *groups: str) -> tuple[Session, list[Repair]]:
    s = Session(graph, data, config=config)
    return s, [*cheap_repairs(s._subject(None, None, None), config, groups)]


def test_repairs_of_single_layers_are_overrides_and_each_changes_what_it_says():
    plain = QuantConfig().with_value("weights.axis", None).with_value("weights.dtype", "int4")
    s, repairs = proposed(GRAPH, X, plain, "dense_1", "dense_2")
    kinds = (Calibrate, Calibrate, PerChannel, CorrectBias, Equalize, RoundWeights, MeasureRange)
    assert tuple(map(type, repairs)) == kinds
    before = s.quantized()
    for repair in repairs:
        after = repair.apply(plain)
        assert (after.activations, after.weights) == (plain.activations, plain.weights)
        assert {*after.tensors, *after.layers} == {*repair.where}
        s.apply(repair)
        made = s.quantized()
        assert made.graph != before.graph
        if isinstance(repair, CorrectBias):
            assert s.config.layers["dense_1"].bias_correction is False
            changed = {name for name, c in made.annotated.constants.items() if before.annotated.constants[name] != c}
            assert changed == {"dense_1.bias", "dense_2.bias"}
        if isinstance(repair, RoundWeights):
            said = [name for name, e in made.encodings.items() if "rounded sequentially" in e.reason]
            assert said == ["dense_1.weight", "dense_2.weight"]
        if isinstance(repair, Equalize):
            assert repair.where == ("dense_0", "dense_1", "dense_2")  # the first one scales what the others read
            changed = {name for name, c in made.prepared.constants.items() if GRAPH.constants[name] != c}
            assert {name.partition(".")[0] for name in changed} == {f"dense_{number}" for number in range(4)}
        s.undo()
        assert s.quantized().graph == before.graph
        done = {type(one) for one in proposed(GRAPH, X, after, "dense_1", "dense_2")[1]}
        assert type(repair) not in done or isinstance(repair, (Calibrate, CorrectBias))
    assert [type(one) for one in proposed(GRAPH, X, QuantConfig(), "dense_0")[1]] == [
        Calibrate,
        Calibrate,
        CorrectBias,
        MeasureRange,
    ]


def test_a_concatenation_of_unlike_parts_at_the_end_is_split():
    rng = np.random.default_rng(0)
    weights = {name: Constant(rng.normal(size=(3, 12)).astype(np.float32) * by) for name, by in (("w0", 40), ("w1", 1))}
    nodes = [
        node("nn.dense", ["x", "w0"], "boxes"),
        node("nn.dense", ["x", "w1"], "scores"),
        node("concatenate", ["boxes", "scores"], "joined", axis=1),
        node("reshape", ["joined"], "y", newshape=("N", 6, 1)),
    ]
    graph = build("head", {"x": TensorType(("N", 12), "float32")}, ["y"], nodes, weights)
    s, repairs = proposed(graph, X, QuantConfig(), "joined")
    (split,) = [repair for repair in repairs if isinstance(repair, SplitScales)]
    assert split.where == ("joined", "y")
    before = s.encodings["scores"].qparams.scales
    exact = call(graph, X)[:, 3:]

    def error() -> float:
        return float(np.abs(call(s.quantized().graph, X)[:, 3:] - exact).mean())

    coarse = error()
    s.apply(split)
    assert error() < coarse / 10
    assert s.encodings["scores"].qparams.scales <= before


@pytest.mark.parametrize(
    ("setting", "layer", "words"),
    [
        ("bias_correction", "relu_0", "has no weights"),
        ("weights_rounding", "relu_0", "has no weights"),
        ("equalize", "dense_5", "no layer whose inputs could be scaled alone reads it"),
    ],
)
def test_a_setting_that_says_nothing_about_a_layer_is_told(setting: str, layer: str, words: str):
    s = session()
    with pytest.raises(ConfigError, match=f"{layer}.*{setting}: .*{words}"):
        s.override(layer, **{setting: "sequential" if "rounding" in setting else True})
