"""Repairs that were measured: the layers that spoil a network together come first, and one call repairs it."""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from qbench.data.dataset import Dataset
from qbench.errors import Cancelled, DataError
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.outputs import outputs_of
from qbench.quant.config import QuantConfig
from qbench.runtime.interpreter import call
from qbench.search.joint import gain_db, joint_gains, score
from qbench.search.judge import Worth
from qbench.search.regions import Region, groups_of, regions_of
from qbench.search.repairs import CorrectBias, KeepFloat, PerChannel, RoundWeights, global_repairs, tensor_repairs
from qbench.session.session import Session
from tests.search.planted import CULPRITS, GRAPH, X, session


def test_the_layers_that_spoil_it_together_are_found_and_repaired_by_one_edit():
    s = session()
    before = s.run(progress=False).output.sqnr_db
    table = s.repairs(progress=False)
    assert isinstance(table.repair[0], RoundWeights)  # costs no time: the weights are what spoils it
    both = [isinstance(repair, KeepFloat) and {*CULPRITS} <= {*repair.layers} for repair in table.repair]
    first = table[both].iloc[0]
    assert "together" in first.why
    assert len(first.repair.layers) <= len(s.prepared.nodes) / 2
    s.apply(first.repair)
    after = s.run(progress=False).output.sqnr_db
    assert before is not None
    assert after is not None
    assert after - before == pytest.approx(first.gain_db)
    assert first.sqnr_db == pytest.approx(after, abs=1e-3)  # trials run fused
    assert s.history.edits[-1].label == str(first.repair)
    s.undo()
    assert s.config == s.history.edits[0].config


def test_an_executor_finds_the_same():
    with ThreadPoolExecutor(2) as pool:
        tables = [session().repairs(progress=False, executor=executor) for executor in (None, pool)]
    assert [*tables[0].repair] == [*tables[1].repair]
    assert [*tables[0].gain_db_probe] == [*tables[1].gain_db_probe]


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


def test_trials_are_not_repeated(tmp_path, monkeypatch: pytest.MonkeyPatch):
    first = session(path=tmp_path / "s").repairs(progress=False)

    def never(*_: object) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr("qbench.search.subject.judged", lambda judge, trials, *_: [never() for _ in trials])
    again = session(path=tmp_path / "s").repairs(progress=False)
    assert [*again.repair] == [*first.repair]


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
    assert first.interaction_db == 9.0


@pytest.mark.parametrize(("before", "after", "gain"), [(-math.inf, 12.0, math.inf), (-math.inf, -math.inf, 0.0)])
def test_gain_where_the_output_was_no_number(before: float, after: float, gain: float):
    assert gain_db(Worth(before, 1.0), Worth(after, 1.0)) == gain
    assert score(Worth(before, 1.0), Worth(after, 1.0)) == pytest.approx(20.0 if gain else 0.0)


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
    assert CorrectBias(repairs[-1].why, False) in repairs


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
    (row,) = [row for row in rounded.itertuples() if isinstance(row.repair, RoundWeights)]
    assert row.gain_db_probe > 0


def test_repairs_of_single_tensors_are_overrides_that_cost_no_time():
    plain = QuantConfig().with_value("weights.axis", None)
    *calibrate, channels = tensor_repairs(plain, ("relu_0", "relu_1"), ("dense_0.weight",))
    assert isinstance(channels, PerChannel)
    assert channels.apply(plain).tensors["dense_0.weight"].axis == "channel"
    assert channels.apply(plain).weights == plain.weights
    assert [repair.what for repair in calibrate] == ["calibrator max", "calibrator percentile"]
    for repair in calibrate:
        after = repair.apply(plain)
        assert (repair.where, {*after.tensors}) == (("relu_0", "relu_1"), {"relu_0", "relu_1"})
        assert after.activations == plain.activations
    assert [*tensor_repairs(QuantConfig(), (), ("dense_0.weight",))] == []  # it has them already
