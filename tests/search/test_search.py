"""A search reaches what is wanted, says the nearest where nothing does, and goes on after a kill."""

from __future__ import annotations

import json
import math
import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import qbench as qb
from qbench.errors import DataError, SessionError
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.types import TensorType
from qbench.quant.config import QuantConfig
from qbench.runtime.interpreter import call
from qbench.search.front import Found, Front, Limits
from qbench.search.ledger import Ledger
from qbench.session.session import Session
from tests.passes.quantizable import node
from tests.search.planted import GRAPH, X, session


def found(label: str, metric: float, ms: float, size: int = 100) -> Found:
    nothing = {"metric_chosen_on": None, "metric_held_back": None, "sqnr_db": None}
    return Found(label=label, config=QuantConfig(), metric=metric, ms=ms, bytes=size, **nothing)


ROWS = (found("start", 0.5, 1.0), found("slow", 0.95, 3.0), found("mid", 0.9, 2.0), found("poor", 0.4, 2.5))


@pytest.mark.parametrize(
    ("limits", "best", "met"),
    [
        (Limits(), "slow", True),
        (Limits(at_least=0.85), "mid", True),
        (Limits(at_least=0.99), "slow", False),
        (Limits(max_ms=2.2), "mid", True),
        (Limits(at_least=0.45), "start", True),
        (Limits(at_least=0.45, max_ms=2.2), "mid", True),
        (Limits(at_least=0.92, max_ms=2.9), "mid", False),
        (Limits(max_bytes=10), "slow", False),
    ],
)
def test_the_one_to_take(limits: Limits, best: str, met: bool):
    front = Front(ROWS, 1.0, limits)
    assert (front.best.label, front.met) == (best, met)
    assert [row.label for row in front.pareto] == ["start", "mid", "slow"]
    assert ("nothing meets what is wanted" in str(front)) is not met


@pytest.mark.parametrize(
    "limits", [{"seconds": 0.0}, {"max_ms": -1.0}, {"at_least": math.nan}, {"max_bytes": 0}, {"at_least": "0.9"}]
)
def test_a_limit_that_is_none(limits: dict[str, float]):
    with pytest.raises(DataError, match=f"{next(iter(limits))}=.*: it must be a"):
        Limits(**limits)  # pyright: ignore[reportArgumentType]


def test_where_nothing_is_wanted_it_is_a_config_near_the_float_model():
    assert Limits(seconds=3.0).or_near(-2.0) == Limits(at_least=-2.02, seconds=3.0)
    for limits, exact in ((Limits(max_ms=3.0), 1.0), (Limits(at_least=0.5), 1.0), (Limits(), math.inf)):
        assert limits.or_near(exact) == limits


def test_a_search_reaches_what_is_wanted_and_a_second_one_measures_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    told: list[Front] = []
    s = session(path=tmp_path / "s")
    front = s.search(at_least=45.0, tell=told.append)
    assert front.met
    assert front.best.metric >= 45 > front.rows[0].metric
    assert [len(one.rows) for one in told] == list(range(1, len(front.rows) + 1))
    assert s.config == front.rows[0].config
    s.edit("search", front.best.config)
    assert s.run(progress=False).output.sqnr_db == pytest.approx(front.best.sqnr_db, abs=1e-3)

    monkeypatch.setattr("qbench.search.subject.judged", lambda judge, configs, *_: [1 / 0 for _ in configs])
    again = session(path=tmp_path / "s").search(at_least=45.0)
    assert [(row.label, row.config, row.metric) for row in again.rows] == [
        (row.label, row.config, row.metric) for row in front.rows
    ]


def test_time_that_is_allowed_is_used():
    few, many = (session().search(at_least=36.0, max_ms=limit) for limit in (None, 1e6))
    assert len(many.rows) > len(few.rows)
    assert many.best.metric > few.best.metric >= 36.0


def test_bytes_are_saved_where_they_are_wanted():
    s = session()
    start = s.search(seconds=1e-9).rows[0]
    front = s.search(max_bytes=start.bytes - 200)
    assert front.met
    assert front.best.bytes <= start.bytes - 200
    sizes = [row.bytes for row in front.rows if "int4 weights" in row.label]
    assert min(sizes) < start.bytes


def test_as_many_weights_as_the_limit_asks_for_are_narrowed_first_and_with_care():
    rng = np.random.default_rng(0)
    nodes = [
        node("a", "nn.dense", "x wa", "a"),
        node("scores", "nn.batch_matmul", "a x", "s", transpose_rhs=True),  # its second factor is no weight
        node("b", "nn.dense", "s wb", "y"),
    ]
    weights = {"wa": rng.normal(size=(16, 16)), "wb": rng.normal(size=(8, 6))}
    constants = {name: Constant(array.astype(np.float32)) for name, array in weights.items()}
    graph = build("pair", {"x": TensorType(("N", 6, 16), "float32")}, ["y"], nodes, constants)
    s = Session(graph, rng.normal(size=(48, 6, 16)).astype(np.float32), preset="int8")
    start = s.search(seconds=1e-9).rows[0]
    front = s.search(max_bytes=start.bytes - 100, **until("int4 weights"))
    assert front.met
    assert front.rows[1].label.startswith("round weights sequentially, int4 weights")
    assert front.rows[1].bytes <= start.bytes - 100
    assert front.rows[1].config.weights.rounding == "sequential"


def chain(sizes: tuple[int, ...]) -> Graph:
    rng = np.random.default_rng(2)
    pairs = [*pairwise(sizes)]
    weights = {f"w{i}": rng.normal(size=pair[::-1]).astype(np.float32) / pair[0] for i, pair in enumerate(pairs)}
    nodes = [node(f"d{i}", "nn.dense", f"{f'd{i - 1}' if i else 'x'} w{i}", f"d{i}") for i in range(len(pairs))]
    constants = {name: Constant(array) for name, array in weights.items()}
    return build("chain", {"x": TensorType(("N", sizes[0]), "float32")}, [nodes[-1].output], nodes, constants)


def nearness(outputs: dict[str, np.ndarray], wanted: np.ndarray) -> float:
    """0 for the float model, less for others."""
    return -float(np.square(outputs["d5"] - wanted).mean())


def until(label: str) -> dict[str, Any]:
    """Options of a search that may end once it has measured what is called so."""
    enough = threading.Event()

    def tell(front: Front) -> None:
        if any(label in row.label for row in front.rows):
            enough.set()

    return {"tell": tell, "cancel": enough}


@pytest.mark.parametrize("share", [0.5, 0.7, 0.8])
def test_no_weight_is_narrowed_that_need_not_be_and_what_follows_is_as_small(share: float):
    graph = chain((12, 30, 6, 40, 3, 20, 9))
    x = np.random.default_rng(0).normal(size=(48, 12)).astype(np.float32)
    s = Session(graph, x, evaluation=(x, call(graph, x)), preset="int8", metric=nearness)
    start = s.search(seconds=1e-9).rows[0]
    sizes = {name: constant.array.size for name, constant in graph.constants.items()}
    most = int(start.bytes - share * sum(sizes.values()) / 2)
    front = s.search(at_least=1.0, max_bytes=most, **until("all in 16 bits"))  # nothing reaches what is wanted
    narrow = {name for name, tensor in front.rows[1].config.tensors.items() if tensor.dtype == "int4"}
    assert front.rows[1].bytes <= most
    assert all(front.rows[1].bytes + sizes[name] / 2 > most for name in narrow)
    wide = [row for row in front.rows if "all in 16 bits" in row.label]
    assert wide and all(row.bytes <= most for row in wide)


def test_without_evaluation_data_it_is_told_of_samples_that_no_weight_was_rounded_on():
    graph = chain((12, 30, 9))
    x = (np.random.default_rng(0).normal(size=(96, 4)) @ np.random.default_rng(1).normal(size=(4, 12))).astype("f4")
    s = Session(graph, x, preset="int8")
    careful = s.config.with_value("weights.dtype", "int4").with_value("weights.rounding", "sequential")
    s.edit("careful", careful)
    (row,) = s.search(seconds=1e-9).rows
    quantized, unseen = s.quantized(careful), x[72:]
    exact, made = (qb.run(each, unseen) for each in (quantized.prepared, quantized.graph))
    assert isinstance(exact, np.ndarray)
    assert row.sqnr_db == pytest.approx(10 * np.log10(np.square(exact).sum() / np.square(exact - made).sum()), abs=1e-3)

    def rounded(calibration: np.ndarray, evaluation: np.ndarray | None = None) -> list[np.ndarray]:
        graph_of_ints = Session(graph, calibration, evaluation, config=careful).quantized().annotated
        return [graph_of_ints.constants[name].array for name in graph.constants]

    other = np.concatenate([x[:72], 0.5 * x[:24]])  # no larger: ranges stay
    for one, two in zip(rounded(x[:72], x), rounded(other), strict=True):
        np.testing.assert_array_equal(one, two)
    assert any((one != two).any() for one, two in zip(rounded(x), rounded(x, x), strict=True))


def test_it_begins_before_what_is_left_to_be_measured_was():
    s = Session(GRAPH, X)
    (first,) = s.search(seconds=1e-9).rows
    assert (first.label, first.config.activations.least_db) == ("all in 8 bits", 0.0)
    assert first.config.weights.rounding == "nearest"
    s.run(progress=False)
    assert s.search(seconds=1e-9).rows[0].label == "start"


def test_time_is_up_or_somebody_stops_it():
    front = session().search(seconds=1e-9)
    assert front.stopped
    assert len(front.rows) == 1
    stop = threading.Event()
    stopped = session().search(tell=lambda front: stop.set(), cancel=stop)
    assert stopped.stopped
    assert len(stopped.rows) == 1


def test_front_as_json():
    front = session().search(lambda outputs, y: float(outputs["y"][np.arange(len(y)), y].mean()), seconds=1e-9)
    data = json.loads(front.to_json())
    assert data["trials"] == 1
    (row,) = data["rows"]
    assert {"metric", "metric_chosen_on", "metric_held_back", "sqnr_db", "ms", "bytes", "config", "best"} <= {*row}
    assert QuantConfig.from_data(row["config"]) == front.best.config
    assert row["best"] is True
    assert list(front.frame().pareto) == [True]


def test_a_ledger_is_read_again_and_a_damaged_one_is_told(tmp_path: Path):
    path = tmp_path / "trials.json"
    key = Ledger.key(QuantConfig(), "data")
    Ledger(path).put({key: {"sqnr_db": 3.5}})
    assert Ledger(path).get(key) == {"sqnr_db": 3.5}
    assert Ledger(path).get(Ledger.key(QuantConfig(), "other data")) is None
    with pytest.raises(
        SessionError, match=r"trials\.json' cannot be read: trial \w+ is not of sqnr_db, effort; delete the"
    ):
        Ledger(path).get(key, "sqnr_db", "effort")
    entries = ('{"a": {"sqnr_db": "much"}}', '{"a": []}', '{"a": null}', '[["a", "b"]]')
    for text in ("{", *(f'{{"version": 1, "trials": {entry}}}' for entry in entries)):
        path.write_text(text)
        with pytest.raises(SessionError, match=r"trials\.json' cannot be read: .*; delete the file to begin again"):
            Ledger(path)


def test_trials_may_be_saved_wherever_a_text_says(tmp_path: Path):
    session().search(seconds=1e-9, trials=str(tmp_path / "trials.json"))
    assert (tmp_path / "trials.json").exists()


@pytest.mark.parametrize("entry", [{}, {"foo": 1.0}])
def test_a_trial_that_says_something_else_is_told_with_the_file(tmp_path: Path, entry: dict[str, float]):
    session().search(seconds=1e-9, trials=tmp_path / "trials.json")
    known = json.loads((tmp_path / "trials.json").read_text())
    known["trials"] = dict.fromkeys(known["trials"], entry)
    (tmp_path / "trials.json").write_text(json.dumps(known))
    with pytest.raises(SessionError, match=r"trials\.json' cannot be read: .*; delete the file to begin again"):
        session().search(seconds=1e-9, trials=tmp_path / "trials.json")


@pytest.mark.parametrize(
    ("decibels", "limits", "best"),
    [
        ((34.0, 44.0, 142.0, 12.0), Limits(), "int8"),
        ((24.0, 44.0, 142.0, 12.0), Limits(), "some"),
        ((24.0, 25.0, 25.5, 12.0), Limits(), "float"),
        ((34.0, 44.0, 142.0, 12.0), Limits(max_ms=9), "float"),
        ((34.0, 44.0, 142.0, 12.0), Limits(at_least=40), "some"),
    ],
)
def test_without_a_metric_what_is_good_and_fast_is_best_and_not_all_in_float(
    decibels: tuple[float, ...], limits: Limits, best: str
) -> None:
    names = ("int8", 1.0), ("some", 1.5), ("float", 4.0), ("poor", 0.9)
    rows = tuple(found(name, metric, ms) for (name, ms), metric in zip(names, decibels, strict=True))
    assert Front(rows, math.inf, limits).best.label == best


def test_nothing_is_tried_again_where_nothing_is_spared() -> None:
    labels = [row.label for row in session().search().rows]
    assert len(labels) > 5 and not any("default preset" in label for label in labels)
