"""What counts of detections, against sums by hand."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.evaluate.detections import Beside, Detections, beside, may_detect
from qbench.ir.build import build
from qbench.ir.frozen import FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.types import TensorType

RNG = np.random.default_rng(0)
BOXES = RNG.normal(size=(1, 50, 4)).astype(np.float32) * 3
KINDS = RNG.uniform(0, 0.4, (1, 50, 3)).astype(np.float32)
FOUND = np.where(np.arange(50) % 10, 0.001, 0.95).astype(np.float32)[None, :, None]


def joined(*parts: np.ndarray) -> np.ndarray:
    return np.concatenate(parts, -1)


def test_chances_are_what_lies_between_0_and_1_along_one_axis() -> None:
    rows = joined(BOXES, KINDS)
    assert Detections.seen_in([rows]) == Detections(2, (4, 7))
    assert Detections.seen_in([rows.transpose(0, 2, 1)]) == Detections(1, (4, 7))
    assert Detections.seen_in([joined(KINDS, BOXES)]) == Detections(2, (0, 3))
    assert Detections.seen_in([rows[..., 1:]]) is None, "three numbers are no box"
    assert Detections.seen_in([KINDS, KINDS]) is None and Detections.seen_in([joined(BOXES, BOXES)]) is None
    assert Detections.seen_in([joined(KINDS, BOXES, KINDS)]) is None, "chances stand side by side"
    assert Detections.seen_in([rows, joined(BOXES, KINDS + 2)]) is None, "in every sample"
    assert Detections.seen_in([rows, rows[:, :20]]) == Detections(2, (4, 7)), "places may be fewer"


def test_a_first_chance_that_says_whether_there_is_anything_is_told_from_a_class() -> None:
    sure = KINDS.copy()
    sure[..., 1] = 0.9
    found = Detections.seen_in([joined(BOXES, FOUND, sure)])
    assert found == Detections(2, (4, 8), is_found=True)
    assert found.found(joined(BOXES, FOUND, sure)) == pytest.approx(FOUND[..., 0] * 0.9)
    classes = np.where(FOUND > 0.5, joined(FOUND, 0 * FOUND, 0 * FOUND), KINDS)
    alone = Detections.seen_in([joined(BOXES, classes)])
    assert alone == Detections(2, (4, 7)), "the others exclude the first one"
    assert alone.found(joined(BOXES, classes)) == pytest.approx(classes.max(-1))
    assert Detections.seen_in([joined(BOXES, FOUND)]) == Detections(2, (4, 5))


def test_errors_count_by_how_likely_either_model_finds_something() -> None:
    kind = Detections(2, (4, 5))
    wanted, given = joined(BOXES, FOUND), joined(BOXES + 1, np.roll(FOUND, 1, axis=1))
    chances, boxes = kind.sums(wanted, given)
    by_hand = np.zeros((2, 2))
    for place in range(50):
        weight = max(float(wanted[0, place, 4]), float(given[0, place, 4]))
        for group, numbers in enumerate(((4,), range(4))):
            for i in numbers:
                one, other = float(wanted[0, place, i]), float(given[0, place, i])
                by_hand[group] += weight * one**2, weight * (one - other) ** 2
    assert (chances, boxes) == (pytest.approx(by_hand[0]), pytest.approx(by_hand[1]))
    assert kind.sums(wanted, given * np.nan) == ((1, np.inf), (1, np.inf))


def network(first: str, second: str) -> Graph:
    """Two functions of the input, joined and turned round."""
    nodes = [Node(name, op, ("x",), (name,)) for name, op in (("a", first), ("b", second))]
    nodes += [Node("c", "concatenate", ("a", "b"), ("c",), FrozenMap({"axis": 2}))]
    nodes += [Node("y", "transpose", ("c",), ("y",), FrozenMap({"axes": (0, 2, 1)}))]
    return build("net", {"x": TensorType((1, 8, 4), "float32")}, ("y",), nodes, {})


def test_chances_come_from_a_sigmoid_and_what_they_are_joined_to_does_not() -> None:
    assert may_detect(network("tanh", "sigmoid"), "y") and may_detect(network("sigmoid", "exp"), "y")
    assert not may_detect(network("sigmoid", "sigmoid"), "y") and not may_detect(network("tanh", "exp"), "y")
    assert not may_detect(network("tanh", "sigmoid"), "b") and not may_detect(network("tanh", "sigmoid"), "x")


def outputs(channels: int, first: str = "sigmoid") -> Graph:
    """A map of chances, and numbers about the same places."""
    nodes = [Node("map", first, ("x",), ("map",)), Node("more", "tanh", ("z",), ("more",))]
    types = {"x": TensorType((1, 1, 5, 6), "float32"), "z": TensorType((1, channels, 5, 6), "float32")}
    return build("net", types, ("map", "more"), nodes, {})


def test_numbers_about_places_that_another_output_finds() -> None:
    answers = {"map": [np.zeros((1, 1, 5, 6))], "more": [np.zeros((1, 4, 5, 6))]}
    assert beside(outputs(4), "more", answers) == Beside("map", Detections(1, (0, 1)))
    assert beside(outputs(4), "map", answers) is None and beside(outputs(4, "tanh"), "more", answers) is None
    assert beside(outputs(4), "more", {**answers, "more": [np.zeros((1, 4, 5, 7))]}) is None, "other places"
    rows = {"map": [np.zeros((1, 50, 3))], "more": [np.zeros((1, 50, 4))]}
    found = beside(outputs(4), "more", rows)
    assert found == Beside("map", Detections(2, (0, 3)))
    weights = found.detections.weights(KINDS, np.roll(KINDS, 1, axis=1))
    by_hand = [0.0, 0.0]
    for place in range(50):
        weight = max(KINDS[0, place].max(), KINDS[0, place - 1].max())
        by_hand[0] += weight * (BOXES[0, place].astype(float) ** 2).sum()
        by_hand[1] += weight * 4
    assert found.sums(BOXES.astype(np.float64), BOXES + 1.0, weights) == pytest.approx(by_hand)
