"""A search whose cure is 16 bits for all, and 8 for what does not need them."""

from __future__ import annotations

import numpy as np

from qbench.search.front import Limits
from qbench.session.session import Session
from tests.search.test_floor import SEEN, difference


def right(outputs: dict[str, np.ndarray], wanted: np.ndarray) -> float:
    """1 where the outputs are the float model's, less by the share of the signal that is lost."""
    error = np.square(outputs["small"] - wanted).sum() / np.square(wanted).sum()
    return max(0.0, 1 - float(np.sqrt(error)))


def test_what_loses_most_of_the_metric_in_8_bits_is_tried_in_16_and_narrowed_from_there() -> None:
    graph = difference()
    wanted = -SEEN @ graph.constants["w1"].array.T  # all that is left of the two sums
    session = Session(graph, SEEN, (SEEN, wanted), metric=right, preset="int8")
    front = session.search(at_least=0.95)
    assert front.rows[0].metric < 0.5, "all in 8 bits"
    assert front.rows[1].label == "all in 16 bits" and front.rows[1].metric > 0.95
    narrowed = [row for row in front.rows if "parts in 8 bits" in row.label]
    assert narrowed and all(row.config.tensors for row in narrowed)
    assert front.met and front.best.metric >= 0.95
    wide = {name for name, tensor in front.rows[1].config.tensors.items() if tensor.dtype == "int16"}
    assert wide > {name for name, tensor in narrowed[0].config.tensors.items() if tensor.dtype == "int16"}
    assert not any(tensor.reason for tensor in front.rows[1].config.tensors.values()), "somebody has chosen them"


def test_where_16_bits_take_more_time_than_there_is_they_are_not_tried() -> None:
    graph = difference()
    wanted = -SEEN @ graph.constants["w1"].array.T
    session = Session(graph, SEEN, (SEEN, wanted), metric=right, preset="int8")
    front = session.search(at_least=0.95, max_ms=1e-9)
    assert not front.met and not any(row.label.startswith("all in 16") for row in front.rows)
    assert Limits(max_ms=1e-9).spent(front.best) > 0
