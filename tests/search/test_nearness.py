"""How near outputs are: counted by hand."""

from __future__ import annotations

import math
import weakref

import numpy as np
import pytest

from qbench.data.dataset import Dataset
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.types import TensorType
from qbench.runtime.programs import plan
from qbench.search.answers import Answers
from qbench.search.nearness import Exact


def wrong_by(error: float) -> Graph:
    """A float graph that gives back what it reads, and so much more."""
    constants = {"error": Constant(np.full((1, 4), error, np.float32))}
    nodes = [Node("y", "add", ("x", "error"), ("y",), FrozenMap())]
    return build("net", {"x": TensorType((1, 4), "float32")}, ("y",), nodes, constants)


def samples(*levels: float) -> list[dict[str, np.ndarray]]:
    return [{"x": np.full((1, 4), level, np.float32)} for level in levels]


def test_the_ratio_is_of_all_samples_together() -> None:
    exact = Exact.of(wrong_by(0), samples(1, 3))
    assert exact.decibels(wrong_by(0.5))["y"] == pytest.approx(10 * math.log10((1 + 9) / (2 * 0.25)))
    assert exact.decibels(wrong_by(0))["y"] == math.inf


def test_in_a_usual_sample_it_is_the_mean_of_each_alone() -> None:
    exact = Exact.of(wrong_by(0), samples(1, 100))
    alone = [Exact.of(wrong_by(0), samples(level)).decibels(wrong_by(0.5))["y"] for level in (1, 100)]
    assert exact.usual(wrong_by(0.5))["y"] == pytest.approx(np.mean(alone))
    assert exact.usual(wrong_by(0))["y"] == 60
    assert exact.usual(wrong_by(1e9))["y"] == exact.usual(wrong_by(math.inf))["y"] == 0


def test_the_loudest_of_some_samples_are_taken_in_their_order() -> None:
    exact = Exact.of(wrong_by(0), samples(9, 3, 1, 5))
    chosen = exact.loudest([1, 2, 3], 2)
    assert [feed["x"][0, 0] for feed in chosen.feeds] == [3, 5]
    assert [float(array[0, 0]) for array in chosen.outputs["y"]] == [3, 5]


@pytest.mark.parametrize(("spread", "counts"), [(5.0, 25.0), (0.5, 10**-1.5 * (400 + 0.25))])
def test_what_all_values_of_a_large_output_have_in_common_is_no_signal(spread: float, counts: float) -> None:
    """A detector's scores before their sigmoid are far below zero nearly everywhere."""
    kind = TensorType((1, 8, 8), "float32")

    def scores(error: float) -> Graph:
        constants = {"error": Constant(np.full((1, 1, 1), error, np.float32))}
        return build("net", {"x": kind}, ("y",), [Node("y", "add", ("x", "error"), ("y",), FrozenMap())], constants)

    feeds = [{"x": np.tile(np.array([-20 + spread, -20 - spread], np.float32), 32).reshape(1, 8, 8)} for _ in range(2)]
    exact = Exact.of(scores(0), feeds)
    for judge in (exact, exact.loudest([0, 1], 1)):
        assert judge.decibels(scores(0.5))["y"] == pytest.approx(10 * math.log10(counts / 0.25), abs=1e-3)


def test_where_nothing_is_to_be_found_noise_counts_by_an_average_sample() -> None:
    exact = Exact.of(wrong_by(0), samples(0.001, 4))
    quiet = exact.loudest([0], 1)
    assert quiet.decibels(wrong_by(0.5))["y"] == pytest.approx(10 * math.log10(8 / 0.25), abs=1e-3)
    loud = exact.loudest([1], 1)  # more than an average one: by itself
    assert loud.decibels(wrong_by(0.5))["y"] == pytest.approx(10 * math.log10(16 / 0.25))


@pytest.mark.parametrize("by", ["exact", "answers"])
def test_what_was_planned_last_is_there_for_the_next_graph(by: str) -> None:
    """Nothing else holds the lowerings: whoever judges many graphs, most of which are alike, finds them again."""
    graph, inputs = wrong_by(0.5), samples(1)
    exact, answers = Exact.of(wrong_by(0), inputs), Answers(Dataset(graph, inputs))
    assert all(lowering() is None for lowering in lowerings(graph))
    _ = exact.decibels(graph) if by == "exact" else answers.exact(graph)
    found = lowerings(graph)
    assert found and all(lowering() is not None for lowering in found)


def lowerings(graph: Graph) -> list[weakref.ref[object]]:
    """Those of a program that is gone."""
    return [weakref.ref(each) for each in plan(graph).lowerings]


def test_what_is_no_number_is_as_far_as_can_be() -> None:
    exact = Exact.of(wrong_by(0), samples(1))
    assert exact.decibels(wrong_by(math.inf))["y"] == -math.inf


def says(letters: np.ndarray) -> Graph:
    """A recognizer that is given scores of a text, and adds its own to them."""
    constants = {"more": Constant(letters)}
    nodes = [
        Node("sum", "add", ("x", "more"), ("sum",), FrozenMap()),
        Node("y", "nn.softmax", ("sum",), ("y",), FrozenMap()),
    ]
    return build("net", {"x": TensorType((1, 8, 40), "float32")}, ("y",), nodes, constants)


def test_of_a_text_it_counts_what_is_read_not_where_it_stands() -> None:
    def scores(*winners: int) -> np.ndarray:
        return 12 * np.eye(40, dtype=np.float32)[np.array(winners)][np.newaxis]

    text, nothing = scores(0, 0, 7, 0, 0, 8, 0, 0), np.zeros((1, 8, 40), np.float32)
    exact = Exact.of(says(nothing), [{"x": text}])
    moved, other = (scores(*winners) - text for winners in ((0, 0, 0, 7, 0, 8, 0, 0), (0, 0, 9, 0, 0, 8, 0, 0)))
    assert exact.decibels(says(moved))["y"] > 30
    assert exact.decibels(says(other))["y"] == pytest.approx(10 * math.log10(100 * 0.05), abs=0.1)  # all texts are lost
    assert exact.decibels(says(nothing))["y"] == math.inf


def test_of_detections_counts_what_is_said_where_something_is_found() -> None:
    """Boxes are read from the input, and so are chances, which a sigmoid makes of the last number."""
    cuts = {"box": (0, 4), "raw": (4, 5)}

    def detector(error: float) -> Graph:
        nodes = [
            Node(
                name,
                "strided_slice",
                ("x",),
                (name,),
                FrozenMap({"begin": (first,), "end": (last,), "strides": (1,), "axes": (2,)}),
            )
            for name, (first, last) in cuts.items()
        ]
        nodes += [Node("off", "add", ("box", "error"), ("off",)), Node("sure", "sigmoid", ("raw",), ("sure",))]
        nodes += [Node("y", "concatenate", ("off", "sure"), ("y",), FrozenMap({"axis": 2}))]
        error_of_all = Constant(np.full((1, 1, 1), error, np.float32))
        return build("net", {"x": TensorType((1, 20, 5), "float32")}, ("y",), nodes, {"error": error_of_all})

    boxes = np.where(np.arange(20)[None, :, None] == 3, 2.0, 1000.0) * np.ones((1, 20, 4))
    raw = np.where(np.arange(20) == 3, 4.0, -30.0)[None, :, None]
    exact = Exact.of(detector(0), [{"x": np.concatenate([boxes, raw], -1).astype(np.float32)}])
    assert exact.judging.finds.joined["y"].chances == (4, 5)
    assert exact.decibels(detector(0.2))["y"] == pytest.approx(20, abs=1e-3), "of 2, and not of 1000"
    assert exact.loudest([0], 1).judging == exact.judging


def test_what_is_said_beside_a_map_counts_where_the_map_finds_something() -> None:
    def network(error: float) -> Graph:
        nodes = [Node("map", "sigmoid", ("x",), ("map",)), Node("more", "add", ("z", "error"), ("more",))]
        types = {"x": TensorType((1, 1, 4, 5), "float32"), "z": TensorType((1, 2, 4, 5), "float32")}
        constants = {"error": Constant(np.full((1, 1, 1, 1), error, np.float32))}
        return build("net", types, ("map", "more"), nodes, constants)

    there = np.arange(20).reshape(1, 1, 4, 5) == 7
    feed = {"x": np.where(there, 5, -40), "z": np.where(there, 2.0, 1000.0) * np.ones((1, 2, 1, 1))}
    exact = Exact.of(network(0), [{name: array.astype(np.float32) for name, array in feed.items()}])
    assert exact.judging.finds.beside["more"].finder == "map"
    given = exact.decibels(network(0.2))
    assert given["more"] == pytest.approx(20, abs=1e-3) and given["map"] == math.inf
