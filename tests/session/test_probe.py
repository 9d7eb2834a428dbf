"""Quick looks at what an edit costs, and edits of many layers at once."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from qbench.data.dataset import Dataset
from qbench.errors import Cancelled, ConfigError, DataError, SessionError
from qbench.evaluate.evaluate import evaluate
from qbench.ir.build import build, rebuild
from qbench.ir.frozen import Constant
from qbench.ir.types import TensorType
from qbench.quant.config import QuantConfig
from qbench.session.session import Session
from tests.networks import mlp, node, residual, samples

GRAPH = mlp()
X, Y = samples(50, seed=2), np.random.default_rng(3).integers(0, 5, 50)
COARSE = QuantConfig().with_value("activations.dtype", "uint8").with_value("weights.dtype", "int4")


def session(probe_samples: int = 32) -> Session:
    return Session(GRAPH, samples(60), (X, Y), config=COARSE, probe_samples=probe_samples)


def test_a_probe_is_an_evaluation_of_evenly_spread_samples():
    s = session(probe_samples=8)
    probe = s.probe()
    rows = [0, 7, 14, 21, 28, 35, 42, 49]
    alone = evaluate(s.quantized(), Dataset(GRAPH, X[rows], Y[rows]))
    assert probe.output.data == "probe"
    assert probe.output.samples == 8
    assert probe.output.top1 == alone.output.top1
    assert probe.output.agreement == alone.output.agreement
    assert probe.output.sqnr_db == alone.output.sqnr_db
    assert s.last_probe is probe
    assert s.report is None
    assert s.is_stale


def test_flips_name_samples_of_the_whole_data():
    s = session()
    for report in (s.run(), s.probe()):
        assert report.output.flips
        assert report.output.flipped == len(report.output.flips)
        assert report.output.agreement == 1 - len(report.output.flips) / report.output.samples
        for flip in report.output.flips:
            assert np.array_equal(s.sample(flip.sample)["x"], X[flip.sample : flip.sample + 1])
            assert flip.label == Y[flip.sample]
            assert flip.float_class != flip.quantized_class


def test_no_such_sample():
    with pytest.raises(DataError, match="there is no sample 50: the evaluation data has 50, from 0 on"):
        session().sample(50)


def test_many_overrides_are_one_edit_or_none():
    s = session()
    s.override_many(["dense_0", "relu_1", "dense_1"], dtype="int8", symmetric=True)
    assert s.config == COARSE.override_tensor("relu_0", dtype="int8", symmetric=True).override_tensor(
        "relu_1", dtype="int8", symmetric=True
    )
    assert [edit.label for edit in s.history.edits] == [
        "start",
        "override 'dense_0', 'relu_1', 'dense_1': dtype='int8', symmetric=True",
    ]
    with pytest.raises(SessionError, match="no node and no tensor is called 'dens_1'; did you mean 'dense_1'"):
        s.override_many(["dense_0", "dens_1"], keep_float=True)
    assert s.history.position == 1
    s.undo()
    assert s.config == COARSE


def test_latency_comes_into_every_report_of_that_structure():
    s = session()
    before = s.run()
    assert before.output.latency is None
    assert before.layer("dense_0").ms is None
    latency = s.latency()
    assert latency.quantized_ms > 0
    s.override("dense_1", threshold=0.5)
    after = s.probe()
    assert after.output.latency == latency
    assert (after.layer("dense_0").ms or 0) > 0
    assert after.layer("bias_0").ms is None
    s.override("dense_1", keep_float=True)
    assert s.probe().output.latency is None


def test_without_evaluation_data_or_labels_a_probe_says_what_it_can():
    for s in (Session(GRAPH, samples(60)), Session(GRAPH, samples(60), X)):
        report = s.probe()
        assert report.output.top1 is None
        assert report.output.agreement is not None
        assert all(flip.label is None for flip in report.output.flips)


def test_one_layer():
    graph = build(
        "one",
        {"x": TensorType(("N", 12), "float32")},
        ["y"],
        [node("nn.dense", ["x", "w"], "y")],
        {"w": Constant(np.ones((3, 12), np.float32))},
    )
    (layer,) = Session(graph, samples(9)).probe().by_layer
    assert layer.own_sqnr_db is not None
    assert layer.inherited_sqnr_db == np.inf


def test_constant_tensors_have_scales_and_no_nan():
    graph = mlp()
    dead = rebuild(graph, constants={**graph.constants, "dense_1.weight": Constant(np.zeros((8, 16), np.float32))})
    s = Session(dead, samples(60), X)
    for report in (s.probe(), s.run()):
        assert all(layer.sqnr_db is None or not np.isnan(layer.sqnr_db) for layer in report.by_layer)
        assert report.layer("relu_1").scale > 0


@pytest.mark.parametrize("value", [np.inf, np.nan, -1.0, 0.0, 1e-60])
@pytest.mark.parametrize("key", ["scale", "threshold"])
def test_no_scale_that_is_no_positive_number(key: str, value: float):
    s = session()
    with pytest.raises(ConfigError, match=f"relu_1.*{key}|{key}.*relu_1"):
        s.override("dense_1", **{key: value})
    assert s.config == COARSE


def test_an_edit_of_a_deep_network_runs_what_follows_it():
    graph = residual(blocks=40)
    x = np.random.default_rng(0).normal(size=(9, 3, 6, 7)).astype(np.float32)
    s = Session(graph, x, x, preset="int8")  # nothing is measured first
    everything = len(s.probe().steps_ran)
    s.override("relu_38", threshold=0.5)
    report = s.probe()
    assert 0 < len(report.steps_ran) < everything / 4
    assert report.reference_steps_ran == ()


def test_a_late_probe_does_not_replace_a_newer_one():
    s = session()
    s.quantized()  # calibrated: nobody waits for the other
    started, go_on = threading.Event(), threading.Event()

    class Late:
        def is_set(self) -> bool:
            started.set()
            return not go_on.wait(30)

    late = threading.Thread(target=s.probe, args=(Late(),))
    late.start()
    assert started.wait(30)
    s.override("dense_1", threshold=0.5)
    newer = s.probe()
    go_on.set()
    late.join()
    assert s.last_probe is newer
    assert newer.layer("relu_1").threshold == 0.5


def test_a_cancelled_probe_leaves_the_last_one():
    s = session()
    first = s.probe()
    s.override("dense_1", threshold=0.5)
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        s.probe(cancel)
    assert s.last_probe is first
    assert s.probe().layer("relu_1").threshold == 0.5
