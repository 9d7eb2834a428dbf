from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from qbench.errors import SessionError
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.types import TensorType
from qbench.quant.config import QuantConfig
from qbench.report.entries import Flip
from qbench.report.report import Report
from qbench.session.session import Session
from qbench.views import State, ir_diff_view, layer_table, result_view, tensor_view, workbench_view
from qbench.views.bulk import BULK
from qbench.views.result import constant_bytes
from qbench.views.view import plain
from tests.networks import mlp, node, samples

X, Y = samples(30, seed=5), np.random.default_rng(6).integers(0, 5, 30)


@pytest.fixture
def session() -> Session:
    session = Session(mlp(), samples(20), (X, Y))
    session.run()
    return session


def strict(view: object) -> object:
    return json.loads(json.dumps(plain(view), allow_nan=False))


def test_rows_are_the_reports_layers_in_graph_order(session: Session):
    view = layer_table(State.of(session))
    assert [row.name for row in view.rows] == [node.name for node in session.prepared.nodes]
    row = view.rows[2]
    assert (row.name, row.op, row.shape, row.runs_as, row.bits) == ("relu_0", "nn.relu", "N x 16", "uint8", 8)
    assert row.error.sqnr_db == session.report.by_layer[2].sqnr_db
    assert (view.rows[-1].is_float, view.rows[-1].reason) == (True, "default for this op: softmax stays in float")


def test_the_worst_layer_is_where_most_is_lost_for_good(session: Session):
    session.override("relu_0", threshold=0.05)
    session.run()
    view = workbench_view(State.of(session))
    assert (view.layers.worst, view.tensor.layer) == ("relu_0", "dense_0")  # the row, which has the weights as well
    assert view.tensor.parts == ("activation", "weight")
    assert "for good" in view.layers.worst_why
    assert view.profile.steps[view.profile.falls[0]].name == "dense_0"


def test_the_profile_has_a_step_for_each_fused_group_and_what_it_reads(session: Session):
    session.override("dense_1", keep_float=True)
    session.run()
    view = workbench_view(State.of(session)).profile
    assert [(step.name, step.layers, step.reads) for step in view.steps] == [
        ("dense_0", ("dense_0", "bias_0", "relu_0"), ()),
        ("dense_1", ("dense_1", "bias_1", "relu_1"), (0,)),
        ("dense_2", ("dense_2", "bias_2"), (1,)),
        ("y", ("y",), (2,)),
    ]
    assert [step.edited for step in view.steps] == [False, True, False, False]
    assert view.steps[0].kind == "narrow" and view.steps[3].kind == "float"
    report = {layer.name: layer for layer in session.report.by_layer}
    assert view.steps[0].sqnr_db == report["relu_0"].sqnr_db
    strict(view)


def test_what_stays_in_float_by_default_is_nobodys_edit(session: Session):
    config = session.config.override_many("layers", ["dense_1"], keep_float=True, reason="default: 8 bits spoil it")
    session.edit("taken over", config)
    session.run()
    assert [step.edited for step in workbench_view(State.of(session)).profile.steps] == [False] * 4
    session.override("dense_1", keep_float=False)
    session.run()
    assert [step.edited for step in workbench_view(State.of(session)).profile.steps] == [False, True, False, False]


def test_without_a_great_loss_the_worst_layer_makes_most_error_itself(session: Session):
    state, ratios = State.of(session), [40.0, 12.0, 30.0, None, 9.0, 50.0, None, math.inf, math.nan]
    layers = tuple(
        replace(layer, own_sqnr_db=own, inherited_sqnr_db=7.0, sqnr_db=None)
        for layer, own in zip(state.report.by_layer, ratios, strict=True)
    )
    view = layer_table(replace(state, report=replace(state.report, by_layer=layers)))
    assert view.worst == layers[4].name
    assert [row.own and row.own.level for row in view.rows] == [
        "low", "high", "low", None, "high", "low", None, "low", None,
    ]  # fmt: skip
    assert view.rows[1].own.share == pytest.approx(0.8)
    assert (view.rows[7].own.share, view.rows[0].inherited.sqnr_db) == (0, 7)
    strict(view)
    unmeasured = tuple(replace(layer, own_sqnr_db=None, sqnr_db=60.0 - i) for i, layer in enumerate(layers))
    assert layer_table(replace(state, report=replace(state.report, by_layer=unmeasured))).worst == layers[-1].name
    exact = tuple(replace(layer, own_sqnr_db=math.inf, sqnr_db=math.inf) for layer in layers)
    assert layer_table(replace(state, report=replace(state.report, by_layer=exact))).worst is None


def test_what_several_layers_can_be_given_is_what_a_config_takes():
    for settings, name in ((BULK.activation, "relu_1"), (BULK.weight, "dense_1.weight")):
        for setting in settings:
            for choice in setting.choices:
                QuantConfig().override_tensor(name, **{setting.key: choice.value})
        assert all(setting.choices[-1].value is None for setting in settings)


def test_edits_are_marked_where_they_were_made(session: Session):
    session.override("dense_1", threshold=0.5)
    session.override("dense_1.weight", axis="tensor")
    session.override("dense_0", keep_float=True)
    session.run()
    marks = {row.name: row.overridden for row in layer_table(State.of(session)).rows if row.overridden}
    assert marks == {"relu_1": ("threshold",), "dense_1": ("weight axis",), "dense_0": ("keep_float",)}


def test_result_before_and_after_an_edit(session: Session):
    first = session.report
    session.override("relu_0", threshold=0.01)
    stale = result_view(State.of(session))
    assert stale.is_stale
    session.run()
    view = result_view(State.of(session), first)
    assert not view.is_stale
    assert view.before is not None
    assert view.before.sqnr_db == first.output.sqnr_db
    assert view.now.sqnr_db == session.report.output.sqnr_db < view.before.sqnr_db
    assert 0 < view.steps_ran < view.steps
    assert (view.samples, view.data) == (30, "evaluation")


def test_results_have_baselines_and_names_of_classes(session: Session):
    report = session.run()
    flipping = replace(report, output=replace(report.output, flips=(Flip(3, 1, 2, 0), Flip(4, 1, 9))))
    state = replace(State.of(session), report=flipping)
    view = result_view(state, None, baselines={"start": report}, labels=("a", "b", "c"))
    assert [(one.label, one.outcome.sqnr_db) for one in view.baselines] == [("start", report.output.sqnr_db)]
    assert [flip.names for flip in view.flips] == [("b", "c", "a"), None]  # there is no tenth name


def test_size_counts_bits():
    types = {"x": TensorType((1, 2), "float32")}
    constants = {"w": Constant(np.zeros((3, 2), np.float32))}
    graph = build("g", types, ["y"], [node("nn.dense", ["x", "w"], "y")], constants)
    assert constant_bytes(graph) == 24
    session = Session(mlp(), samples(10))
    view = result_view(State.of(session))
    assert view.bytes_float == sum(c.array.nbytes for c in session.source.constants.values())
    assert view.bytes_now == sum(c.array.nbytes for c in session.graph.constants.values())


def test_graph_before_and_after(session: Session):
    state = State.of(session)
    view = ir_diff_view(state)
    assert view.steps[view.before] == state.quantized.trace.steps[view.before - 1].name
    assert view.steps[0] == "source"
    assert view.after == len(view.steps) - 1
    kinds = {line.right.partition(" = ")[0].strip(): (line.kind, line.layer) for line in view.lines if line.right}
    assert kinds["%dense_0"] == ("changed", "dense_0")
    assert kinds["%x.quantized"][0] == "added"
    requantize = next(line for line in view.lines if "integer.requantize" in line.right)
    assert requantize.layer in {row.name for row in layer_table(state).rows}
    weight = next(line for line in view.lines if line.section == "constant" and "dense_1.weight" in line.right)
    assert weight.layer == "dense_1"
    ends = {line.section: line.layer for line in view.lines if line.section in ("input", "output")}
    assert ends == {"input": "dense_0", "output": "y"}
    assert all(line.kind == "same" for line in ir_diff_view(state, 1, 1).lines)
    with pytest.raises(SessionError, match="no step 99"):
        ir_diff_view(state, 0, 99)


def test_a_name_that_is_wrong_is_an_error_with_the_nearest(session: Session):
    with pytest.raises(SessionError, match="'relu_1'"):
        tensor_view(State.of(session), "rellu_1")


def test_the_chosen_layer_says_what_an_edit_would_change(session: Session):
    state = State.of(session)
    view = tensor_view(state, "dense_1")
    assert view.parts == ("activation", "weight")
    assert "relu_1" in view.about
    assert view.histogram is not None
    assert (view.histogram.tensor, view.can_keep_float, view.overridden) == ("relu_1", True, False)
    softmax = tensor_view(state, "y", "weight")
    assert (softmax.part, softmax.histogram, softmax.can_keep_float) == ("activation", None, False)
    assert "softmax stays in float" in softmax.absent


def test_everything_is_strict_json(session: Session):
    state = State.of(session)
    assert strict(workbench_view(state))["title"] == "mlp"
    assert strict(ir_diff_view(state))["lines"]
    assert strict({"a": float("inf"), "b": (float("-inf"), float("nan"))}) == {"a": "inf", "b": ["-inf", "nan"]}


def test_constant_zero_and_single_samples_have_pictures():
    session = Session(mlp(), np.zeros((1, 12), np.float32), np.ones((1, 12), np.float32))
    state = State.of(session)
    for layer in state.report.by_layer:
        for part in ("activation", "weight"):
            strict(tensor_view(state, layer.name, part))


def test_a_model_without_layers_is_refused():
    session = Session(mlp(), samples(5))
    state = State.of(session)
    empty = State(state.quantized, state.statistics, Report(by_layer=(), output=state.report.output))
    with pytest.raises(SessionError, match="no layers"):
        workbench_view(empty)
