"""Weights rounded on data by default: where samples that they were not rounded on tell that it helps."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from qbench.calibration.collect import collect
from qbench.data.dataset import Dataset
from qbench.errors import Cancelled
from qbench.ir.memo import Memo
from qbench.passes.prepare import prepare
from qbench.passes.round_weights import RoundedTrace, RoundedWeight
from qbench.quant.config import QuantConfig
from qbench.quantize.quantized import quantize_graph
from qbench.quantize.sequential import effort_of, round_sequentially
from qbench.search import rounding
from qbench.search.nearness import Exact
from qbench.search.rounding import measure_rounding
from tests.networks import mlp

RNG = np.random.default_rng(7)
MIX = RNG.normal(size=(6, 12)) @ np.diag(np.geomspace(2, 0.2, 12))
X = (RNG.normal(size=(96, 6)) @ MIX).astype(np.float32)
"""Inputs that go together, which nearest rounding knows nothing of."""
PREPARED = prepare(mlp(sizes=(12, 32, 24, 8)))
GRAPH = PREPARED.graph
NARROW, WIDE = QuantConfig().with_value("weights.dtype", "int4"), QuantConfig()


def found(
    x: np.ndarray, config: QuantConfig = NARROW, cancel: threading.Event | None = None
) -> dict[str, RoundedWeight]:
    data = Dataset(GRAPH, x)
    statistics = collect(GRAPH, data.pick(range(data.pieces)))
    return dict(measure_rounding(PREPARED, statistics, config, data, Memo(), None, cancel))


def decibels(weights: Mapping[str, RoundedWeight] | None, x: np.ndarray) -> float:
    """What the 4-bit network keeps on data of its own."""
    seen = Dataset(GRAPH, X)
    statistics, others = collect(GRAPH, seen.pick(range(seen.pieces))), Dataset(GRAPH, x)
    trace = PREPARED if weights is None else RoundedTrace(PREPARED.source, PREPARED.steps, weights)  # pyright: ignore
    quantized = quantize_graph(trace, statistics, NARROW.with_value("weights.rounding", "measured"))
    return min(Exact.of(GRAPH, others.pick(range(others.pieces))).decibels(quantized.graph).values())


def test_what_is_rounded_so_is_nearer_on_data_that_nobody_saw() -> None:
    unseen = (np.random.default_rng(8).normal(size=(200, 6)) @ MIX).astype(np.float32)
    weights = found(X)
    assert set(weights) == {f"dense_{i}.weight" for i in range(3)}
    assert decibels(weights, unseen) > decibels(None, unseen) + 1


def test_samples_that_judge_say_nothing_of_the_rounding() -> None:
    other = X.copy()
    other[-24:] = other[:24]
    data = Dataset(GRAPH, X)
    encodings = quantize_graph(PREPARED, collect(GRAPH, data.pick(range(96))), NARROW).encodings
    given = {name: encoding for name, encoding in encodings.items() if name in GRAPH.constants}
    alone = dict(round_sequentially(GRAPH, given, Dataset(GRAPH, X[:72])))
    assert found(X) == alone
    assert found(other) == alone


def test_good_outputs_few_samples_and_long_work_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(X, WIDE) == {}
    assert found(X[:8]) == {}
    monkeypatch.setattr(rounding, "effort_of", lambda *given: replace(effort_of(*given), most=1))
    assert found(X) == {}


def test_what_gains_too_little_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounding, "LEAST_GAIN_DB", 100.0)
    assert found(X) == {}


def test_cancelled() -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled, match="how weights are best rounded"):
        found(X, cancel=cancel)


def test_a_weight_that_was_given_other_integers_since_goes_to_the_nearest() -> None:
    data = Dataset(GRAPH, X)
    statistics = collect(GRAPH, data.pick(range(96)))
    trace = RoundedTrace(PREPARED.source, PREPARED.steps, found(X))  # pyright: ignore[reportArgumentType]
    measured, nearest = (NARROW.with_value("weights.rounding", how) for how in ("measured", "nearest"))

    def weights(trace: object, config: QuantConfig) -> dict[str, np.ndarray]:
        graph = quantize_graph(trace, statistics, config).annotated  # pyright: ignore[reportArgumentType]
        return {name: graph.constants[name].array for name in trace.rounded}  # pyright: ignore

    rounded, plain = weights(trace, measured), weights(trace, nearest)
    assert all((rounded[name] != plain[name]).any() for name in rounded)
    wide = weights(trace, measured.override_tensor("dense_0.weight", dtype="int8"))
    said = weights(trace, measured.override_layer("dense_0", weights_rounding="nearest"))
    for some in (wide, said):
        np.testing.assert_array_equal(some["dense_0.weight"], plain["dense_0.weight"])
        np.testing.assert_array_equal(some["dense_1.weight"], rounded["dense_1.weight"])
