"""What is spared 8 bits so that no output is spoiled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import qbench as qb
from qbench.calibration.collect import collect, observed
from qbench.data.dataset import Dataset
from qbench.errors import Cancelled, ConfigError
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.memo import Memo
from qbench.ir.types import TensorType
from qbench.passes.prepare import prepare
from qbench.passes.round_weights import RoundedTrace, RoundedWeight
from qbench.quant.config import QuantConfig
from qbench.search import floor
from qbench.search.floor import FLOOR_DB, measure_spared
from qbench.search.nearness import Exact
from qbench.search.repairs import Spare
from qbench.search.rounding import round_on_rest
from qbench.search.sides import Side, sides_of
from qbench.search.spared import Spared
from qbench.session.session import Session
from tests.networks import mlp
from tests.search import spread

RNG = np.random.default_rng(0)
X = RNG.normal(size=(256, 16)).astype(np.float32)
SEEN = np.tile(X[:64], (4, 1))  # none is outside of the range that the others have
CONFIG = QuantConfig()


def network(cancels: bool = True) -> Graph:
    """A stem, one head that is good in 8 bits, and one that sees nothing but what is left of two nearly equal parts."""
    weights = {name: RNG.normal(0, 0.25, (16, 16)).astype(np.float32) for name in ("w0", "w1", "w2")}
    weights["w3"] = np.concatenate([weights["w2"], weights["w1"]], 1)
    if cancels:
        weights["w3"] = np.concatenate([weights["w2"], -weights["w2"] + 0.02 * weights["w1"]], 1)
    steps = [("fc0", "nn.dense", "x", "w0"), ("act0", "tanh", "fc0"), ("good", "nn.dense", "act0", "w1")]
    steps += [("act1", "nn.relu", "fc0"), ("both", "concatenate", "act1", "act1"), ("small", "nn.dense", "both", "w3")]
    axis = {"both": FrozenMap({"axis": 1})}
    nodes = [Node(name, op, tuple(read), (name,), axis.get(name, FrozenMap())) for name, op, *read in steps]
    constants = {name: Constant(array) for name, array in weights.items()}
    return build("net", {"x": TensorType(("N", 16), "float32")}, ("good", "small"), nodes, constants)


def difference() -> Graph:
    """Two nearly equal tensors and their difference, whose weights are 1 and -1: 8 bits of data are too few."""
    rng = np.random.default_rng(3)
    both = np.concatenate([np.eye(16), -np.eye(16)], 1).astype(np.float32)
    weights = {"w0": rng.normal(0, 0.25, (16, 16)).astype(np.float32), "both.w": both}
    weights["w1"] = 0.01 * rng.normal(0, 0.25, (16, 16)).astype(np.float32)
    steps = [("fc0", "nn.dense", "x", "w0"), ("fc1", "nn.dense", "x", "w1"), ("sum", "add", "fc0", "fc1")]
    steps += [("both", "concatenate", "fc0", "sum"), ("small", "nn.dense", "both", "both.w")]
    axis = {"both": FrozenMap({"axis": 1})}
    nodes = [Node(name, op, tuple(read), (name,), axis.get(name, FrozenMap())) for name, op, *read in steps]
    constants = {name: Constant(array) for name, array in weights.items()}
    return build("net", {"x": TensorType(("N", 16), "float32")}, ("small",), nodes, constants)


def found(graph: Graph, x: np.ndarray = X, cancel: object = None) -> Spared:
    return measure_spared(prepare(graph), CONFIG, Dataset(graph, x), cancel=cancel)  # pyright: ignore


def ratios(graph: Graph, spared: Spared) -> dict[str, float]:
    session = Session(graph, X, X, config=spared.applied(prepare(graph).graph, CONFIG))
    return {loss.name: loss.sqnr_db or 0.0 for loss in session.run(progress=False).output.losses}


def test_the_output_that_8_bits_spoil_is_lifted_and_the_other_keeps_its_integers() -> None:
    graph = network()
    before, spared = ratios(graph, Spared()), found(graph)
    floats = spared.floats
    assert before["small"] < FLOOR_DB < before["good"]
    assert "small" in floats and "good" not in {*floats, *spared.wide}
    assert all("output 'small'" in reason and reason.startswith("default: ") for reason in floats.values())
    after = ratios(graph, spared)
    assert after["small"] > FLOOR_DB and after["good"] > FLOOR_DB
    assert found(graph) == spared


def test_where_16_bits_do_they_are_taken_in_place_of_floats() -> None:
    graph = difference()
    before, spared = ratios(graph, Spared()), found(graph, SEEN)
    assert before["small"] < FLOOR_DB and "sum" in spared.wide and not spared.floats
    assert ratios(graph, spared)["small"] > FLOOR_DB + 3
    session = Session(graph, SEEN, SEEN)
    rows = {layer.name: layer for layer in session.run(progress=False).by_layer}
    assert rows["sum"].runs_as == "int16" and "default: in 8 bits they leave" in (rows["sum"].chosen_by or "")
    assert not session.config.tensors, "the user has said nothing"


def test_int8_is_told_what_the_default_would_spare() -> None:
    """As one repair that gives what the default preset does; nobody is told where nothing is spoiled, or said."""
    s, default = Session(difference(), SEEN, SEEN, preset="int8"), Session(difference(), SEEN, SEEN)
    repairs = s.repairs(progress=False)
    (found,) = [row for row in repairs.itertuples() if isinstance(row.repair, Spare)]
    assert {"sum", "small"} & {*found.repair.where} and found.sqnr_db > FLOOR_DB + 3
    s.apply(found.repair)
    assert s.config == default.config
    after, wanted = (each.run(progress=False).output.sqnr_db for each in (s, default))
    assert after == wanted == pytest.approx(found.sqnr_db, abs=1e-3)
    assert not any(isinstance(repair, Spare) for repair in s.repairs(progress=False).repair)
    even = Session(network(cancels=False), X, X, preset="int8")
    assert not any(isinstance(repair, Spare) for repair in even.repairs(progress=False).repair)


@pytest.mark.parametrize("preset", ["default", "int8"])
def test_a_search_comes_to_what_is_spared_where_nothing_else_is_enough(preset: Any) -> None:
    labelled = Session(difference(), SEEN, (SEEN, np.arange(256) % 16), preset=preset)
    front = labelled.search(lambda outputs, y: float(outputs["small"][np.arange(len(y)), y].mean()), at_least=1e6)
    assert "as the default preset" in [row.label for row in front.rows]


def test_an_edit_may_hide_what_was_measured() -> None:
    """Of what is quantized only while another layer is in float; what a user writes must be about something."""
    graph = mlp(3, (12, 24, 5))
    bare = graph.nodes[0].outputs[0]  # without its bias, no tensor of its own
    measured = CONFIG.override_many("tensors", [bare], dtype="int16", reason="default: it lost too much")
    session = Session(graph, X[:, :12], config=measured)
    session.override(graph.nodes[-2].name, keep_float=True)
    assert session.run(progress=False).output.sqnr_db is not None
    with pytest.raises(ConfigError, match=bare):
        Session(graph, X[:, :12], config=CONFIG.override_tensor(bare, dtype="int16")).run(progress=False)


def test_where_16_bits_do_not_do_for_all_the_rest_gets_them_or_8() -> None:
    """The sum needs more than 8 bits of data, the last layer more than 8 bits of weights, which nearly cancel."""
    graph, (large, small) = difference(), RNG.normal(size=(2, 16, 16))
    weight = np.concatenate([large, 0.01 * small - large], 1).astype(np.float32)
    twice = Node("twice", "concatenate", ("small", "small"), ("twice",), FrozenMap({"axis": 1}))
    last = Node("last", "nn.dense", ("twice", "last.w"), ("last",))
    constants = {**graph.constants, "last.w": Constant(weight)}
    both = build("both", graph.input_types(), ("last",), [*graph.nodes, twice, last], constants)
    spared = found(both, SEEN)
    assert "last" in spared.floats and "fc1" not in spared.floats and "sum" in spared.wide
    assert ratios(both, spared)["last"] > FLOOR_DB


def test_weights_rounded_on_data_are_kept_where_they_help_on_other_data(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = difference()
    prepared, data = prepare(graph), Dataset(graph, SEEN)
    statistics = collect(prepared.graph, data.pick(range(data.pieces)))
    fitted = round_on_rest(prepared, statistics, CONFIG, data, Memo())
    assert fitted
    spoiled = FrozenMap({name: replace(one, weight=Constant(0 * one.weight.array)) for name, one in fitted.items()})

    def kept(weights: FrozenMap[str, RoundedWeight]) -> FrozenMap[str, RoundedWeight] | None:
        config = CONFIG.with_value("weights.rounding", "measured")
        return measure_spared(prepared, config, data, lambda: weights).weights

    assert kept(spoiled) == {} == kept(FrozenMap())
    monkeypatch.setattr("qbench.search.rounding.LEAST_GAIN_DB", -200.0)
    assert kept(fitted) == fitted, "nothing is asked of them"
    assert found(graph, SEEN).weights is None, "nobody rounds any"
    assert found(network(cancels=False)).weights is None, "nothing is spoiled"


@pytest.mark.parametrize(("seen", "unseen", "helps"), [(9.0, 0.5, True), (-9.0, 0.5, True), (9.0, -0.5, False)])
def test_only_samples_that_weights_were_not_rounded_on_tell_whether_that_helps(
    seen: float, unseen: float, helps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decibels that rounding gains on either side of the data."""
    graph = difference()
    prepared, data = prepare(graph), Dataset(graph, SEEN)
    weights = round_on_rest(prepared, collect(prepared.graph, data.pick(range(data.pieces))), CONFIG, data, Memo())
    sides = sides_of(prepared.graph, data, observed(prepared.graph), 8)
    trials = floor._Trials(prepared, CONFIG, data.sizes, sides, lambda: weights, 44, None, None)
    gains = {id(sides[0]): unseen, id(sides[1]): seen}

    def tried(self: floor._Trials, spared: Spared, side: Side, exact: Exact) -> tuple[Any, dict[str, float]]:
        decibels = 20 + (gains[id(side)] if isinstance(self._prepared, RoundedTrace) else 0.0)
        return SimpleNamespace(graph=decibels), {"small": 10 ** (-decibels / 10)}

    monkeypatch.setattr(floor._Trials, "_tried", tried)
    monkeypatch.setattr(Exact, "usual", lambda self, graph: {"small": graph})
    trials._fitted(Spared())
    assert trials._weights == (weights if helps else {})


def test_rules_win_over_16_bits_by_default_and_a_threshold_is_one_of_16_bits() -> None:
    graph = difference()
    prepared, spared = prepare(graph).graph, found(graph, SEEN)
    ruled = spared.applied(prepared, CONFIG.with_rule(op="nn.dense", dtype="uint8"))
    edited = spared.applied(prepared, CONFIG.override_tensor("sum", threshold=1.0))
    types = {
        name: encoding.qparams.dtype for name, encoding in Session(graph, X, config=ruled).quantized().encodings.items()
    }
    assert types["sum"] == "int16" and types["fc0"] == "uint8"
    assert edited.tensors["sum"].dtype == "int16" and edited.tensors["sum"].reason is None
    assert Spared.from_json(spared.to_json()) == spared


def test_a_network_without_a_spoiled_output_keeps_its_integers() -> None:
    assert not found(network(cancels=False)).floats and not found(network(cancels=False)).wide


def test_values_that_leave_the_range_that_they_had_at_first_stay_in_float() -> None:
    growing = X * np.geomspace(0.01, 10, len(X), dtype=np.float32)[:, None]
    assert set(found(network(cancels=False), growing).floats) >= {"fc0", "small"}


def lines(hard: int) -> np.ndarray:
    """Scores of 16 lines of text, of which the first so many have a letter that 8 bits do not tell from another one."""
    scores = np.full((16, 8, 40), -1000, np.float32)
    scores[:, :, 0], scores[:, 2, :8], scores[:, 2, 7] = 1000, -1000, 1000
    scores[:hard, 2, 7], scores[:hard, 2, 9] = 3, 0
    return scores


@pytest.mark.parametrize(("hard", "spoiled"), [(0, False), (1, False), (3, True)])
def test_few_texts_are_judged_together(hard: int, spoiled: bool) -> None:
    """Four of them are judged by the ranges of the rest, where one would be more than may be lost; of 16 it is not."""
    nodes = [Node("read", "nn.dense", ("x", "w"), ("read",)), Node("y", "nn.softmax", ("read",), ("y",))]
    kind = TensorType(("N", 8, 40), "float32")
    graph = build("net", {"x": kind}, ("y",), nodes, {"w": Constant(np.eye(40, dtype=np.float32))})
    spared = found(graph, lines(hard))
    assert bool(spared.floats or spared.wide) == spoiled


def test_one_sample_says_ranges_and_is_judged_on() -> None:
    assert not found(network(cancels=False), X[:1]).floats


def test_can_be_stopped() -> None:
    class Set:
        def is_set(self) -> bool:
            return True

    with pytest.raises(Cancelled):
        found(network(), cancel=Set())


def test_a_session_says_why_remembers_it_and_obeys_the_user(tmp_path: Path) -> None:
    graph = network()
    session = Session(graph, X, path=tmp_path / "s")
    report = session.run(progress=False)
    reasons = {layer.name: layer.reason for layer in report.by_layer}
    assert (reasons["small"] or "").startswith("default: in 8 bits they leave") and reasons["good"] is None
    assert not session.config.layers, "the user has said nothing"
    again = Session.resume(tmp_path / "s")
    assert again.quantized().config == session.quantized().config
    session.override("small", keep_float=False)
    assert {node.name: node.reason for node in session.quantized().annotated.nodes}["small"] == ""


def test_what_is_picked_is_judged_by_what_it_is_picked_from() -> None:
    """Boxes of nearly equal scores change places, which is no error of a layer."""
    graph = network(cancels=False)
    anchors = Constant(np.tile(np.float32([0.1, 0.1, 0.2, 0.2]), (4, 1)))
    attrs = {"classes": 1, "most": 3, "overlap": 0.5, "least": -9.0, "scales": (1.0,) * 4}
    steps = [
        Node("boxes", "reshape", ("good",), ("boxes",), FrozenMap({"newshape": (1, 4, 4)})),
        Node("scores", "reshape", ("small",), ("scores",), FrozenMap({"newshape": (1, 4, 4)})),
        Node("pick", "vision.detections", ("boxes", "scores", "anchors"), ("a", "b", "c", "d"), FrozenMap(attrs)),
    ]
    inputs, constants = {"x": TensorType((1, 16), "float32")}, {**graph.constants, "anchors": anchors}
    found = build("ssd", inputs, ("a", "b", "c", "d"), [*graph.nodes, *steps], constants)
    feeds = [{"x": row[None]} for row in X[:64]]
    exact = Exact.of(found, feeds)
    assert [*exact.outputs] == ["boxes", "scores"]
    session = Session(found, feeds)
    ratios = exact.decibels(session.graph)
    assert min(ratios.values()) > FLOOR_DB and max(ratios.values()) < 90
    assert not any((layer.reason or "").startswith("default: in 8") for layer in session.run(progress=False).by_layer)


def test_layers_share_out_their_ranges_before_anything_is_spared(tmp_path: Path) -> None:
    """Channels over four decades: in 8 bits the small ones are lost, until each layer takes up what scales it."""
    graph, data = spread.network(4), np.tanh(X)
    plain = Session(graph, data, data, preset="int8").run(progress=False).output.sqnr_db
    session = Session(graph, data, data, path=tmp_path)
    report = session.run(progress=False)
    assert plain is not None and plain < FLOOR_DB < 26 < (report.output.sqnr_db or 0)
    assert {layer.runs_as for layer in report.by_layer if layer.op == "nn.dense"} <= {"uint8", "int8"}
    equalized = Session(graph, data, data, config=QuantConfig().with_value("weights.equalize", True))
    np.testing.assert_array_equal(qb.run(session.graph, data[:1]), qb.run(equalized.graph, data[:1]))
    resumed = Session(graph, data, data, path=tmp_path)
    assert resumed.statistics["fc0"].max == session.statistics["fc0"].max == equalized.statistics["fc0"].max
    np.testing.assert_array_equal(qb.run(resumed.graph, data[:1]), qb.run(session.graph, data[:1]))


def test_even_channels_stay_as_they_are() -> None:
    session = Session(spread.network(0), np.tanh(X), np.tanh(X))
    assert "equalize" not in [step.name for step in session.graphs.steps]
