"""What trials measure is what the models answer, whatever earlier trials have left behind."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from qbench.data.dataset import Dataset
from qbench.evaluate.cache import ValueCache
from qbench.evaluate.evaluate import evaluate_output
from qbench.quant.config import QuantConfig
from qbench.runtime.interpreter import call
from qbench.search.answers import Answers
from qbench.search.cost import Stopwatch, constant_bytes
from tests.search.planted import GRAPH, X, session


def test_answers_are_the_models():
    s, answers = session(), Answers(Dataset(GRAPH, X))
    exact = answers.joined(s.prepared, answers.exact(s.prepared))["y"]
    assert np.allclose(exact, call(GRAPH, X), atol=1e-5)
    for config in (s.config, QuantConfig(), s.config.override_layer("dense_2", keep_float=True), s.config):
        quantized = s.quantized(config)
        made = answers.of(quantized)
        assert made is not None
        assert np.allclose(answers.joined(s.prepared, made)["y"], call(quantized.graph, X), atol=1e-5)
        wanted = evaluate_output(quantized, answers.data, ValueCache(0)).sqnr_db
        assert answers.ratio(s.prepared, made) == pytest.approx(wanted, abs=1e-3)
        fresh = Answers(answers.data)
        assert fresh.ratio(s.prepared, fresh.of(quantized)) == answers.ratio(s.prepared, made)


def test_no_answer_is_no_ratio():
    assert Answers(Dataset(GRAPH, X)).ratio(GRAPH, None) is None


def test_a_program_costs_as_much_as_itself():
    s = session()
    graph, watch = s.quantized().graph, Stopwatch({"x": X[:1]})
    first = watch.cost(graph)
    assert first.ms > 0
    assert first.bytes == constant_bytes(graph)
    wide = watch.cost(s.prepared)
    assert wide.ms > 0
    assert wide.bytes == constant_bytes(s.prepared)


@pytest.mark.parametrize("ticks", [0, 7])
def test_a_clock_that_ticks_seldom_or_never_is_enough(monkeypatch: pytest.MonkeyPatch, ticks: int):
    """Single runs take no time by it; a few take a tick."""
    asked = itertools.count()
    monkeypatch.setattr("qbench.search.cost.time.thread_time", lambda: ticks * (next(asked) // 7) / 1000)
    s = session()
    watch = Stopwatch({"x": X[:1]})
    costs = [watch.cost(graph).ms for graph in (s.quantized().graph, s.prepared)]
    assert all(0 < ms < 100 for ms in costs)
