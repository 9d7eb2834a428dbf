"""What counts of detections, against sums by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from qbench.evaluate.detections import Beside, Detections, Finds, batchwise, worst_db
from qbench.evaluate.measure import deviation
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
    assert found == Detections(2, (4, 8), says_whether=True)
    assert found.found(joined(BOXES, FOUND, sure)) == pytest.approx(FOUND[..., 0] * 0.9)
    classes = np.where(FOUND > 0.5, joined(FOUND, 0 * FOUND, 0 * FOUND), KINDS)
    alone = Detections.seen_in([joined(BOXES, classes)])
    assert alone == Detections(2, (4, 7)), "the others exclude the first one"
    assert alone.found(joined(BOXES, classes)) == pytest.approx(classes.max(-1))
    assert Detections.seen_in([joined(BOXES, FOUND)]) == Detections(2, (4, 5))


def test_errors_count_by_how_likely_either_model_finds_something() -> None:
    kind = Detections(2, (4, 5))
    wanted, given = joined(BOXES, FOUND), joined(BOXES + 1, np.roll(FOUND, 1, axis=1))
    both = kind.deviations(wanted, given)
    by_hand = np.zeros((2, 2))
    for place in range(50):
        weight = max(float(wanted[0, place, 4]), float(given[0, place, 4]))
        for group, numbers in enumerate(((4,), range(4))):
            for i in numbers:
                one, other = float(wanted[0, place, i]), float(given[0, place, i])
                by_hand[group] += weight * one**2, weight * (one - other) ** 2
    assert [(one.signal, one.noise) for one in both] == [pytest.approx(sums) for sums in by_hand]
    assert [one.sqnr_db for one in kind.deviations(wanted, given * np.nan)] == [None, None]


def network(first: str, second: str) -> Graph:
    """Two functions of the input, joined and turned round."""
    nodes = [Node(name, op, ("x",), (name,)) for name, op in (("a", first), ("b", second))]
    nodes += [Node("c", "concatenate", ("a", "b"), ("c",), FrozenMap({"axis": 2}))]
    nodes += [Node("y", "transpose", ("c",), ("y",), FrozenMap({"axes": (0, 2, 1)}))]
    return build("net", {"x": TensorType((1, 8, 4), "float32")}, ("y",), nodes, {})


def test_chances_come_from_a_sigmoid_and_what_they_are_joined_to_does_not() -> None:
    rows = {"y": [joined(BOXES, KINDS)]}
    for first, second in (("tanh", "sigmoid"), ("sigmoid", "exp")):
        assert Finds.of(network(first, second), rows) == Finds({"y": Detections(2, (4, 7))}, {})
    for first, second in (("sigmoid", "sigmoid"), ("tanh", "exp")):
        assert Finds.of(network(first, second), rows) == Finds({}, {})


def outputs(channels: int, first: str = "sigmoid") -> Graph:
    """A map of chances, and numbers about the same places."""
    nodes = [Node("map", first, ("x",), ("map",)), Node("more", "tanh", ("z",), ("more",))]
    types = {"x": TensorType((1, 1, 5, 6), "float32"), "z": TensorType((1, channels, 5, 6), "float32")}
    return build("net", types, ("map", "more"), nodes, {})


def test_numbers_about_places_that_another_output_finds() -> None:
    answers = {"map": [np.zeros((1, 1, 5, 6))], "more": [np.zeros((1, 4, 5, 6))]}
    assert Finds.of(outputs(4), answers) == Finds({}, {"more": Beside("map", Detections(1, (0, 1)))})
    assert Finds.of(outputs(4, "tanh"), answers) == Finds({}, {})
    other_places = {**answers, "more": [np.zeros((1, 4, 5, 7))]}
    assert Finds.of(outputs(4), other_places) == Finds({}, {})
    rows = {"map": [KINDS, KINDS], "more": [BOXES, BOXES]}
    finds = Finds.of(outputs(4), rows)
    assert finds.beside == {"more": Beside("map", Detections(2, (0, 3)))}
    weights = finds.beside["more"].detections.weights(KINDS, np.roll(KINDS, 1, axis=1))
    signal = noise = 0.0
    for place in range(50):
        weight = max(KINDS[0, place].max(), KINDS[0, place - 1].max())
        assert weights[0, place] == weight
        signal += weight * (BOXES[0, place].astype(float) ** 2).sum()
        noise += weight * 4
    given = {"map": [KINDS, np.roll(KINDS, 1, axis=1)], "more": [BOXES, BOXES + 1]}
    first, second = batchwise(rows, given)
    assert decibels(finds, "more", second) == pytest.approx(10 * np.log10(signal / noise), rel=1e-4)
    assert decibels(finds, "more", first) == decibels(finds, "map", first) == np.inf
    assert decibels(finds, "map", second) == deviation(KINDS, given["map"][1]).sqnr_db
    unknown = {**second[1], "map": second[1]["map"] * np.nan}
    assert decibels(finds, "more", first, [second[0], unknown]) is None


def decibels(finds: Finds, name: str, *batches: Sequence[Mapping[str, np.ndarray]]) -> float | None:
    return worst_db(finds.deviations(name, *both) for both in batches)


def test_twice_the_noise_will_do_in_scores() -> None:
    finds = Finds({"y": Detections(2, (4, 5))}, {})
    wanted, boxes, scores = joined(BOXES, FOUND), joined(BOXES * 1.1, FOUND), joined(BOXES, FOUND * 1.1)
    of_boxes, of_scores = (decibels(finds, "y", [{"y": wanted}, {"y": given}]) for given in (boxes, scores))
    assert of_boxes == pytest.approx(20, abs=1e-3)
    assert of_scores == pytest.approx(20 + 10 * np.log10(2), abs=1e-3)
