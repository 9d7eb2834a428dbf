"""A config that is good enough gets lighter, and no worse than was wanted."""

from __future__ import annotations

import math

import pytest

from qbench.quant.config import QuantConfig
from qbench.search.front import Found
from qbench.search.lighter import lighter
from qbench.search.subject import Subject
from qbench.session.session import Session
from tests.search.planted import GRAPH, X

FLOATS = ("dense_1", "bias_1", "relu_1", "dense_2", "bias_2", "relu_2")


def subject() -> Subject:
    return Session(GRAPH, X, (X[:24], None), preset="int8")._subject(None, None, None)


def measured(subject: Subject, label: str, config: QuantConfig) -> Found:
    metric, cost = subject.quality(config).metric, subject.rung(4)([config])[0].effort
    nothing = {"metric_chosen_on": None, "metric_held_back": None, "sqnr_db": None}
    return Found(label=label, config=config, metric=metric, ms=cost, bytes=1, **nothing)


def trials(below: float) -> tuple[Found, list[Found], float]:
    """The start, all that was measured, and what was enough: so many dB below the start."""
    asked = subject()
    start = measured(asked, "start", QuantConfig.of_preset("int8").override_many("layers", FLOATS, keep_float=True))
    rows, enough = [start], start.metric - below
    for label, config in lighter(asked, start, enough, lambda: rows[-1]):
        rows.append(measured(asked, label, config))
    return start, rows[1:], enough


def test_floats_that_16_bits_replace_are_gone_first() -> None:
    start, tried, enough = trials(3.0)
    widened = tried[0]
    assert "int16 'relu_1', 'relu_2'" in widened.label
    assert not any(layer.keep_float for layer in widened.config.layers.values())
    assert widened.metric >= enough
    assert widened.ms < start.ms


def test_all_goes_back_to_8_bits_where_that_is_enough_too() -> None:
    *_, last = trials(math.inf)[1]
    assert not any(layer.keep_float for layer in last.config.layers.values())
    assert not any(tensor.dtype for tensor in last.config.tensors.values())


@pytest.mark.parametrize("below", [3.0, 6.0])
def test_what_is_given_next_begins_with_what_was_enough(below: float) -> None:
    """A trial that was not good enough leaves nothing in those behind it."""
    start, tried, enough = trials(below)
    wide = {"relu_1", "relu_2"}
    for row in tried[1:]:
        now = {name for name, tensor in row.config.tensors.items() if tensor.dtype == "int16"}
        assert now < wide
        wide = now if row.metric >= enough else wide
    assert all(row.ms < start.ms for row in tried)


def test_nothing_is_given_where_nothing_is_to_spare() -> None:
    assert trials(-60.0)[1] == []
