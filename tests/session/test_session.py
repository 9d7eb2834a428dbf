from __future__ import annotations

import json
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qbench.data.dataset import Dataset
from qbench.data.load import Samples
from qbench.errors import Cancelled, ClusterError, ConfigError, DataError, SessionError
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.evaluate import evaluate
from qbench.evaluate.probe import Probe
from qbench.ir import archive
from qbench.ir.build import rebuild
from qbench.ir.frozen import Constant
from qbench.ir.graph import Node
from qbench.quant.config import QuantConfig
from qbench.runtime.interpreter import call, run
from qbench.session.session import Session
from tests.networks import mlp, samples

GRAPH = mlp()
X, Y = samples(40, seed=2), np.random.default_rng(3).integers(0, 5, 40)
ALL = [node.name for node in Session(GRAPH, samples(2)).graph.nodes]
LAST = ("dense_2.requantize", "bias_2.dequantize", "y")
MIDDLE = ("dense_1.requantize", "relu_1", "dense_2", "bias_2", *LAST)


def session(**options: object) -> Session:
    return Session(GRAPH, samples(30), (X, Y), **options)


def test_only_what_is_stale_runs_again():
    s = session()
    assert list(s.run().steps_ran) == ALL
    assert s.run().steps_ran == ()
    s.override("dense_2", threshold=0.8)
    report = s.run()
    assert report.steps_ran == LAST
    assert report.reference_steps_ran == ()
    s.override("dense_1", threshold=0.9)
    assert s.run().steps_ran == MIDDLE
    s.undo()
    s.undo()
    assert s.run().steps_ran == ()
    s.redo()
    assert s.run().steps_ran == ()
    s.override("dense_2", threshold=0.8)
    assert len(s.history.edits) == 3, "the same override again is no edit"
    s.override("dense_0.weight", axis="tensor")
    assert "x.quantize" not in s.run().steps_ran
    assert s.run().steps_ran == ()


def test_statistics_are_collected_once(monkeypatch: pytest.MonkeyPatch):
    calls = []
    from qbench.session import quantizer

    def counted(*args: object, **options: object) -> object:
        calls.append(1)
        return real(*args, **options)

    real = quantizer.collect_blocks
    monkeypatch.setattr(quantizer, "collect_blocks", counted)
    s = session()
    for threshold in (1.0, 2.0):
        s.override("dense_1", threshold=threshold)
        s.run()
    assert s.encodings["relu_1"].threshold == 2.0
    assert set(s.statistics) >= {"x", "relu_0", "relu_1", "bias_2", "y"}
    assert calls == [1]


def overrides(names: list[str], **setting: list[object]) -> st.SearchStrategy[tuple[str, dict[str, object]]]:
    values = {key: st.sampled_from(choices) for key, choices in setting.items()}
    return st.tuples(st.sampled_from(names), st.fixed_dictionaries(values))


ACTIONS = st.one_of(
    overrides(["x", "dense_0", "relu_1", "bias_2"], threshold=[0.5, 1.0, 2.0]),
    overrides(["dense_0", "dense_2"], dtype=["int8", "uint8", "int16"]),
    overrides(["dense_0", "dense_1", "dense_2"], keep_float=[True, False]),
    overrides(["dense_0", "dense_2"], rounding=["tflite_double", "fp32_rne"]),
    overrides(["dense_0.weight", "dense_2.weight"], axis=["channel", "tensor"]),
    st.sampled_from(["undo", "redo"]),
)
SHARED = {budget: session(cache_bytes=budget) for budget in (0, 5_000, 1 << 20)}


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ACTIONS, min_size=1, max_size=6), st.sampled_from(list(SHARED)))
def test_an_incremental_run_gives_what_a_full_one_does(actions: list[object], budget: int):
    s = SHARED[budget]
    s.config = QuantConfig()
    for action in actions:
        try:
            if isinstance(action, str):
                getattr(s, action)()
            else:
                s.override(action[0], **action[1])
        except SessionError:
            continue
        report = s.run()
        data = Dataset(GRAPH, X, Y)
        full = evaluate(s.quantized(), data, ValueCache(0), probe=Probe(GRAPH, data).data)
        assert (report.by_layer, report.output) == (full.by_layer, full.output)


def test_any_executor_gives_the_same_statistics():
    with ThreadPoolExecutor(2) as executor:
        assert session(executor=executor).statistics == session().statistics


def test_data_as_it_was_read():
    assert Session(GRAPH, Samples(X, None), Samples(X, Y)).run() == Session(GRAPH, X, (X, Y)).run()


def test_a_node_stands_for_the_output_of_its_group():
    s = session()
    for name in ("dense_1", "bias_1", "relu_1"):
        s.override(name, threshold=1.5)
        assert dict(s.config.tensors) == {"relu_1": s.config.tensors["relu_1"]}
        assert s.encodings["relu_1"].threshold == 1.5
        s.undo()
    s.override("dense_1.weight", dtype="int4")
    assert s.encodings["dense_1.weight"].qparams.dtype == "int4"
    s.override("x", scale=0.05, zero_point=100)
    assert (s.encodings["x"].qparams.scale, s.encodings["x"].qparams.zero_point) == (np.float32(0.05), 100)


def test_a_threshold_clips_the_range():
    s = session()
    statistics = s.statistics["bias_2"]
    s.override("dense_2", threshold=0.5)
    q = s.encodings["bias_2"].qparams
    low, high = max(statistics.min, -0.5), min(statistics.max, 0.5)
    assert (q.qmin - q.zero_points[0]) * q.scales[0] == pytest.approx(low, abs=q.scales[0])
    assert (q.qmax - q.zero_points[0]) * q.scales[0] == pytest.approx(high, abs=q.scales[0])


def test_keeping_a_layer_in_float():
    s = session()
    s.override("dense_1", keep_float=True)
    report = s.run()
    assert report.layer("dense_1").runs_as == "float32"
    assert report.layer("dense_1").reason == "excluded by the user"
    s.reset("dense_1")
    assert s.config == QuantConfig.of_preset()
    assert s.run().layer("dense_1").runs_as == "uint8"


@pytest.mark.parametrize(
    ("name", "what", "error", "message"),
    [
        ("dense_3", {"threshold": 1.0}, SessionError, "no node and no tensor is called 'dense_3'; did you mean 'den"),
        ("y", {"threshold": 1.0}, SessionError, "nothing that 'y' makes is quantized: threshold would have no effect"),
        ("dense_1.weight", {"keep_float": True}, SessionError, "'dense_1.weight' is made by no layer"),
        ("dense_1", {"treshold": 1.0}, ConfigError, "treshold: unknown key; did you mean 'threshold'"),
        ("dense_1", {"threshold": -1.0}, ConfigError, "threshold"),
        ("dense_1", {"threshold": float("nan")}, ConfigError, "threshold"),
        ("dense_1", {"scale": 0}, ConfigError, "scale"),
        ("dense_1", {"dtype": "int7"}, ConfigError, "dtype"),
        ("dense_1", {"zero_point": 300}, ConfigError, "zero_point"),
        ("dense_1", {"zero_point": -1}, ConfigError, r"zero_point: -1 is outside uint8 \[0, 255\]"),
        ("dense_1", {"dtype": "int4"}, ConfigError, "dtype: int4 is for weights; activations are one of"),
        ("dense_1", {"scale": [0.1, 0.2]}, ConfigError, "scale: cannot be per channel: activations are quantized per"),
        ("dense_1", {"axis": "channel"}, ConfigError, "axis: cannot be per channel: activations are quantized per ten"),
        ("dense_1.weight", {"scale": [0.1, 0.2]}, ConfigError, "is a list of 2, but the weight has 8 channels"),
        ("y", {"keep_float": False}, ConfigError, "layers.y.keep_float: cannot be false: default for this op: softmax"),
        (None, {"threshold": 1.0}, SessionError, "the name of a layer or tensor is text, not NoneType"),
        (["dense_1"], {"threshold": 1.0}, SessionError, "is text, not list; override_many takes several"),
        ("dense_1", {"calibrator": "mss"}, ConfigError, "mse"),
        ("dense_1", {}, SessionError, "nothing to set"),
        ("<script>\n" + "x" * 10_000, {"threshold": 1.0}, SessionError, "10009 characters"),
    ],
)  # fmt: skip
def test_bad_overrides_change_nothing(name: str, what: dict[str, object], error: type[Exception], message: str):
    s = session()
    with pytest.raises(error, match=message):
        s.override(name, **what)
    assert s.config == QuantConfig.of_preset()
    assert len(s.history.edits) == 1


def test_reset_needs_something_to_take_back():
    with pytest.raises(SessionError, match="'dense_1' has no override"):
        session().reset("dense_1")


def test_history_has_a_line_for_each_edit():
    s = session()
    s.override("dense_1", threshold=2.5)
    s.reset("relu_1")
    s.config = s.config.with_value("weights.axis", None)
    assert [edit.label for edit in s.history.edits] == [
        "start",
        "override 'dense_1': threshold=2.5",
        "reset 'relu_1'",
        "set config",
    ]
    with pytest.raises(SessionError, match="nothing to redo"):
        s.redo()
    for _ in range(3):
        s.undo()
    with pytest.raises(SessionError, match="nothing to undo"):
        s.undo()
    assert s.generation == 6


def test_diff_says_what_changed_and_what_came_of_it():
    s = session()
    assert str(s.diff()) == "nothing changed"
    s.override("dense_1", threshold=0.5)
    assert str(s.diff()) == "config:\n  tensors.relu_1.threshold: (not said) -> 0.5"
    s.run()
    found = s.diff()
    assert found.config == (("tensors.relu_1.threshold", None, 0.5),)
    assert set(found.encodings) == {"relu_1"}
    assert found.graph is not None
    assert "dense_1.requantize" in {entry.left_name for entry in found.graph.of("changed")}
    assert "tensors.relu_1.threshold: (not said) -> 0.5" in str(found)
    assert "'relu_1': uint8 scale" in str(found)


def test_the_trace_goes_from_the_model_to_integers():
    s = session()
    assert s.graphs.source is GRAPH
    assert s.graphs.graph is s.graph
    assert [step.name for step in s.graphs.steps][-4:] == ["annotate", "correct-bias", "realize", "legalize"]
    faked = run(s.quantized().annotated, {"x": X})["y"]
    assert np.abs(faked - run(s.graph, {"x": X})["y"]).max() < 0.05


def test_snapshots_compare():
    s = session()
    s.snapshot("start")
    s.override("dense_1", keep_float=True)
    s.run()
    s.snapshot("one float")
    table = s.compare("start", "one float").set_index("name")
    assert table.loc["dense_1", "runs_as_before"] == "uint8"
    assert table.loc["dense_1", "runs_as_after"] == "float32"
    assert s.compare("start").equals(s.compare("start", "one float"))
    assert list(s.snapshots) == ["start", "one float"]
    with pytest.raises(SessionError, match="no snapshot 'stat'; did you mean 'start'"):
        s.compare("stat")


def test_sensitivity():
    s = session()
    stages = set()
    table = s.sensitivity(progress=lambda stage, done, total: stages.add(stage))
    assert set(table["name"]) == {"dense_0", "dense_1", "dense_2"}
    assert stages == {"calibration", "sensitivity"}


def test_without_evaluation_data_the_report_says_so():
    report = Session(GRAPH, samples(30)).run()
    assert report.output.data == "calibration"
    assert report.output.top1 is None
    assert report.output.samples == 30
    assert "30 calibration samples" in str(report)


def test_one_sample_is_enough():
    report = Session(GRAPH, samples(1), (X[:1], Y[:1])).run()
    assert report.output.samples == 1


@pytest.mark.parametrize("data", [{"x": X}, [X[:7], X[7:]], [{"x": X[:1]}, {"x": X[1:]}]])
def test_all_ways_to_give_data_are_one(data: object):
    whole, other = Session(GRAPH, X, X), Session(GRAPH, data, data)
    assert other.run() == whole.run()
    assert other.statistics == whole.statistics


@pytest.mark.parametrize(
    ("calibration", "evaluation", "message"),
    [
        (X[:0], None, "calibration data: the data is empty"),
        (X, X[:0], "evaluation data: the data is empty"),
        (X, (X, Y[:-1]), "40 evaluation samples but 39 labels"),
        (X, (X, X), "must be integers"),
        (X.astype(np.float64), None, "astype"),
        (np.full((1, 12), np.nan, np.float32), None, "NaN"),
    ],
)
def test_bad_data(calibration: object, evaluation: object, message: str):
    with pytest.raises(DataError, match=message):
        Session(GRAPH, calibration, evaluation)


def test_labels_that_the_model_does_not_predict():
    with pytest.raises(DataError, match="do not fit predictions"):
        Session(GRAPH, X, (X, np.zeros((40, 2), int))).run()


def test_a_quantized_graph_is_refused():
    with pytest.raises(SessionError, match="quantized already"):
        Session(session().graph, X)


@pytest.mark.parametrize("graph", [None, "mnist_mlp.onnx"])
def test_what_is_no_graph_is_refused(graph: object):
    with pytest.raises(SessionError, match="a session is made of a graph, not"):
        Session(graph, X)


def test_a_config_that_does_not_fit_the_model():
    stray = QuantConfig().override_tensor("relu_7", threshold=1.0)
    with pytest.raises(ConfigError, match=r"'relu_7'; did you mean 'relu_1'"):
        session(config=stray)
    s = session()
    for config in (stray, QuantConfig().with_rule(op="nn.conv2d", dtype="int8")):
        with pytest.raises(ConfigError):
            s.config = config
    for config in (None, {"rounding": "fp32_rne"}, "tuned.json"):
        with pytest.raises(ConfigError, match="a config is a QuantConfig, not"):
            s.config = config
    assert len(s.history.edits) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.override_many("dense_1", threshold=1.0), "names of layers or tensors as a list"),
        (lambda s: s.override_many(None, threshold=1.0), "names of layers or tensors as a list, not NoneType"),
        (lambda s: s.reset(["dense_1"]), "is text, not list"),
        (lambda s: s.reset_many("dense_1"), "names of layers or tensors as a list"),
        (lambda s: s.go_to("start"), "position start is outside a history of 1 edits"),
        (lambda s: s.apply("keep float"), "a repair is applied, not str: take one of repairs"),
        (lambda s: s.restore(["a"]), "meant by its name, not by list"),
        (lambda s: s.compare(s.run(progress=False)), "meant by its name, not by Report"),
    ],
)
def test_arguments_of_another_kind(call: Any, message: str):
    s = session()
    with pytest.raises(SessionError, match=message):
        call(s)
    assert len(s.history.edits) == 1


def test_other_arguments_of_another_kind():
    s = session()
    with pytest.raises(DataError, match="cancel=bool says nothing: give something with is_set"):
        s.run(progress=False, cancel=True)
    with pytest.raises(ConfigError, match="a config is a QuantConfig, not str"):
        s.quantized("int8")
    with pytest.raises(ClusterError, match=r"executor= takes a concurrent\.futures\.Executor, not int"):
        s.repairs(progress=False, executor=4)
    with pytest.raises(DataError, match="there is no sample first"):
        s.sample("first")
    with pytest.raises(DataError, match="cache_bytes=None: it must be a whole number, at least 0"):
        session(cache_bytes=None)
    with pytest.raises(DataError, match="probe_samples='8': it must be a whole number, at least 1"):
        session(probe_samples="8")


def test_a_list_with_classes_and_a_tuple_of_batches_say_what_is_meant():
    with pytest.raises(DataError, match=r"a list has batches, \(x, y\) with the classes is a tuple"):
        Session(GRAPH, X, [X, Y])
    with pytest.raises(DataError, match="two batches are a list, not a tuple"):
        Session(GRAPH, X, (X[:20], X[20:]))
    assert Session(GRAPH, X, [X[:20], X[20:]]).run(progress=False).output.samples == 40


def test_an_override_may_wait_while_its_layer_is_in_float():
    s = session()
    s.override("dense_2", threshold=0.5)
    s.override("dense_2", keep_float=True)
    assert s.run().layer("dense_2").scale is None
    with pytest.raises(SessionError, match="would have no effect"):
        s.override("bias_2", threshold=0.6)
    s.override("dense_2", keep_float=False)
    assert s.run().layer("dense_2").threshold == 0.5


def test_integers_can_be_saved(tmp_path: Path):
    s = session()
    s.save(tmp_path / "model.qbench")
    assert archive.load(tmp_path / "model.qbench") == s.graph


def test_a_cancelled_run_leaves_the_last_report():
    s = session()
    first = s.run()
    s.override("dense_0", threshold=1.0)
    stop = threading.Event()
    with pytest.raises(Cancelled, match="stopped after 0 of 40 samples"):
        s.run(progress=lambda *_: stop.set(), cancel=stop)
    assert s.report == first
    assert s.is_stale
    assert s.run() == s.report
    assert not s.is_stale


def test_calibration_can_be_cancelled():
    s = session()
    stop = threading.Event()
    with pytest.raises(Cancelled):
        s.run(progress=lambda *_: stop.set(), cancel=stop)
    assert s.report is None
    assert s.run().output.samples == 40


def test_progress_goes_from_calibration_to_evaluation():
    seen = []
    session().run(progress=lambda *told: seen.append(told))
    assert [told for told in seen if told[0] == "calibration"][-1] == ("calibration", 30, 30)
    evaluated = [told for told in seen if told[0] == "evaluation"]
    assert evaluated == sorted(evaluated)
    assert evaluated[-1] == ("evaluation", 40, 40)
    assert evaluated[0] == ("evaluation", 0, 40)


@pytest.mark.parametrize("stage", ["calibration", "evaluation"])
def test_an_interrupt_loses_nothing(stage: str, tmp_path: Path):
    def interrupt(told: str, done: int, total: int) -> None:
        if told == stage and done >= total // 2:
            raise KeyboardInterrupt

    s = session(path=tmp_path / "s")
    s.override("dense_0", threshold=1.0)
    with pytest.raises(KeyboardInterrupt):
        s.run(progress=interrupt)
    assert s.report is None
    seen = []
    report = s.run(progress=lambda *told: seen.append(told))
    calibrated = [done for told, done, _ in seen if told == "calibration"]
    assert calibrated == [*range(31 - len(calibrated), 31)]
    assert len(calibrated) == (30 if stage == "calibration" else 0)  # a whole block is kept, and this is less than one
    whole = session(config=s.config).run()
    assert (report.by_layer, report.output) == (whole.by_layer, whole.output)
    assert Session.resume(tmp_path / "s").report == report


def test_a_late_result_does_not_replace_a_newer_one():
    s = session()
    s.run()
    newer = []

    def meanwhile(stage: str, done: int, total: int) -> None:
        if not newer:
            s.override("dense_1", threshold=0.5)
            newer.append(s.run())

    s.override("dense_1", threshold=1.0)
    late = s.run(progress=meanwhile)
    assert late.layer("dense_1").threshold == 1.0
    assert s.report is newer[0]
    assert not s.is_stale


def test_threads_edit_and_run_at_once(tmp_path: Path):
    s = session(path=tmp_path / "s")
    failures = []

    def work(name: str) -> None:
        try:
            for threshold in (0.5, 1.0, 1.5):
                s.override(name, threshold=threshold)
                s.run()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in ("x", "dense_0", "dense_1", "dense_2")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert {name: override.threshold for name, override in s.config.tensors.items()} == dict.fromkeys(
        ("x", "relu_0", "relu_1", "bias_2"), 1.5
    )
    assert len(s.history.edits) == 13
    report = s.run()
    data = Dataset(GRAPH, X, Y)
    full = evaluate(s.quantized(), data, probe=Probe(GRAPH, data).data)
    assert (report.by_layer, report.output) == (full.by_layer, full.output)
    assert s.report == report
    assert Session.resume(tmp_path / "s").history == s.history


def mean_of_first(outputs: dict[str, np.ndarray], y: list[dict[str, float]]) -> float:
    return float(np.mean([out[0] * truth["weight"] for out, truth in zip(outputs["y"], y, strict=True)]))


def test_the_users_metric_is_asked_about_both_models_and_the_probe(tmp_path: Path):
    x, truths = samples(40, seed=5), [{"weight": float(i)} for i in range(40)]
    session = Session(mlp(), samples(20), (x, truths), metric=mean_of_first, probe_samples=4, path=tmp_path / "s")
    output = session.run(progress=False).output
    assert output.metric_name == "mean_of_first"
    exact = call(session.prepared, x)
    made = call(session.graph, x)
    assert output.metric_float == pytest.approx(mean_of_first({"y": exact}, truths), rel=1e-4)
    assert output.metric == pytest.approx(mean_of_first({"y": made}, truths), rel=1e-4)
    assert (output.top1, json.loads(session.report.to_json())["output"]["metric"]) == (None, output.metric)
    rows = session._probe.indices
    few = mean_of_first({"y": exact[rows]}, [truths[i] for i in rows])
    assert session.probe().output.metric_float == pytest.approx(few, rel=1e-4)
    assert "mean_of_first" in str(session.report)
    again = Session.resume(tmp_path / "s", metric=mean_of_first, truths=truths)
    assert again.run(progress=False).output.metric == output.metric
    assert Session.resume(tmp_path / "s").run(progress=False).output.metric is None


@pytest.mark.parametrize(
    ("metric", "y", "complaint"),
    [
        (lambda outputs, y: math.nan, [0] * 8, "must be finite"),
        (lambda outputs, y: outputs["z"], [0] * 8, "KeyError: 'z'; it was given 'y' float32"),
        (lambda outputs, y: 1.0, [0] * 7, "8 evaluation samples but 7 truths"),
        ("nowhere:f", [0] * 8, "cannot be imported"),
    ],
)
def test_a_metric_that_fails_says_so(metric: Any, y: list[int], complaint: str):
    with pytest.raises(DataError, match=complaint):
        Session(mlp(), samples(8), (samples(8), y), metric=metric).run(progress=False)


def test_names_and_labels_are_text(tmp_path: Path):
    s = session(path=tmp_path / "s")
    for name in (3, None, b"x"):
        with pytest.raises(SessionError, match="a snapshot's name is text, not"):
            s.snapshot(name)  # pyright: ignore[reportArgumentType]
        with pytest.raises(SessionError, match="the label of an edit is text, not"):
            s.edit(name, QuantConfig().with_value("weights.axis", None))  # pyright: ignore[reportArgumentType]
    s.snapshot("kept")
    s.override("dense_1", threshold=0.9)
    assert [*s.snapshots] == ["kept"] and len(s.history.edits) == 2


def test_masked_values_are_no_data():
    masked = np.ma.masked_array(X, X > 1)
    for data in (masked, {"x": masked}, [masked, masked], [{"x": X}, {"x": masked}]):
        with pytest.raises(DataError, match=r"masked in places; give numbers for them"):
            Session(GRAPH, data).run()
    full = Session(GRAPH, np.ma.masked_array(X, False)).run()
    assert full.output == Session(GRAPH, X).run().output


def test_truth_values_beside_real_outputs_are_no_part_of_the_ratio():
    """One that changes is one of few, and says nothing in decibels."""
    least = Constant(np.float32(1 / GRAPH.types["y"].shape[1]))
    nodes = [*GRAPH.nodes, Node("found", "greater", ("y", "least"), ("found",))]
    both = rebuild(GRAPH, nodes=nodes, constants={**GRAPH.constants, "least": least}, outputs=("y", "found"))
    narrow = QuantConfig().with_value("weights.dtype", "int4")
    alone, beside = (Session(graph, samples(30), X, config=narrow).run().output for graph in (GRAPH, both))
    assert alone.sqnr_db == beside.sqnr_db
