"""What is left of what outputs say, counted by hand from what both models answer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qbench as qb
from qbench.evaluate.chances import Chances
from qbench.evaluate.detections import Finds
from qbench.evaluate.judging import Judging, Said
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.types import TensorType
from qbench.search.nearness import Exact
from qbench.session.session import Session
from tests.networks import mlp, node, samples

PLACES, WIDTH = 20, 6


def detector(joined: bool) -> Graph:
    """Boxes and a score for every place, joined or as two outputs; seldom is there anything."""
    rng = np.random.default_rng(4)
    constants = {
        "to_box": rng.normal(size=(4, WIDTH)),
        "to_score": rng.normal(size=(1, WIDTH)),
        "seldom": np.full(1, -2.0),
    }
    nodes = [
        node("nn.dense", ["x", "to_box"], "box"),
        node("nn.dense", ["x", "to_score"], "raw"),
        node("nn.bias_add", ["raw", "seldom"], "biased", axis=2),
        node("sigmoid", ["biased"], "score"),
        *([node("concatenate", ["box", "score"], "y", axis=2)] if joined else []),
    ]
    kept = {name: Constant(array.astype(np.float32)) for name, array in constants.items()}
    types = {"x": TensorType(("N", PLACES, WIDTH), "float32")}
    return build("detector", types, ["y"] if joined else ["box", "score"], nodes, kept)


def images(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, PLACES, WIDTH)).astype(np.float32)


def answers(graph: Graph, x: np.ndarray) -> dict[str, np.ndarray]:
    made = qb.run(graph, x)
    return dict(made) if isinstance(made, Mapping) else dict(zip(graph.outputs, [made], strict=True))


def by_hand(exact: np.ndarray, made: np.ndarray, weights: np.ndarray, noise_counts: float) -> float:
    signal = noise = 0.0
    for sample, place in np.ndindex(weights.shape):
        wanted, given_ = (array[sample, place].astype(np.float64) for array in (exact, made))
        signal += weights[sample, place] * (wanted**2).sum()
        noise += weights[sample, place] * ((wanted - given_) ** 2).sum() * noise_counts
    return 10 * np.log10(signal / noise)


@pytest.mark.parametrize("joined", [True, False])
def test_boxes_count_where_something_is_found(joined: bool) -> None:
    x = images(30, 1)
    session = Session(detector(joined), images(20, 0), x, preset="int8")
    report = session.run()
    exact, made = (answers(graph, x) for graph in (session.prepared, session.graph))
    boxes, scores = (
        [some["y"][..., :4] if joined else some["box"] for some in (exact, made)],
        [some["y"][..., 4:] if joined else some["score"] for some in (exact, made)],
    )
    weights = np.maximum(scores[0][..., 0], scores[1][..., 0]).astype(np.float64)
    of_boxes = by_hand(*boxes, weights, 1)
    found = {loss.name: loss.found_db for loss in report.output.losses}
    if joined:
        assert found == {"y": pytest.approx(min(of_boxes, by_hand(*scores, weights, 0.5)))}
        nearness = Exact.of(session.prepared, [{"x": x}]).decibels(session.graph)
        assert found == pytest.approx(nearness), "what the default goes by"
    else:
        assert found == {"box": pytest.approx(of_boxes), "score": None}
    assert "where something is found" in str(report)


def test_boxes_are_asked_again_where_what_finds_them_changed() -> None:
    session = Session(detector(joined=False), images(20, 0), images(30, 1), preset="int8")
    first = session.run().output.losses[0]
    session.override("raw", scale=0.5)
    warm = session.run().output.losses[0]
    cold = Session(session.source, images(20, 0), images(30, 1), config=session.config).run().output.losses[0]
    assert warm == cold and warm.sqnr_db == first.sqnr_db and warm.found_db != first.found_db


def test_a_probe_asks_the_float_model_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, of = list[int](), Judging.of
    monkeypatch.setattr(Judging, "of", lambda *given: asked.append(1) or of(*given))
    session = Session(detector(joined=True), images(20, 0), images(60, 1), preset="int8")
    session.run()
    session.override("y", threshold=3.0)
    found = session.probe().output.losses[0].found_db
    assert asked == [1] and found is not None


def test_choices_lose_nats() -> None:
    x = samples(40, seed=5)
    session = Session(mlp(), samples(20), x, preset="int8")
    loss = session.run().output.losses[0]
    p, q = (answers(graph, x)["y"].astype(np.float64) for graph in (session.prepared, session.graph))
    lost = np.mean(
        [sum(a * np.log(a / max(b, 1e-9)) for a, b in zip(*row, strict=True)) for row in zip(p, q, strict=True)]
    )
    assert loss.nats_lost == pytest.approx(lost, rel=1e-4)
    assert (loss.found_db, loss.texts_alike) == (None, None)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(0, 99))
def test_texts_are_alike_by_their_letters_however_samples_are_split(sizes: list[int], seed: int) -> None:
    rng, count = np.random.default_rng(seed), sum(sizes)
    texts = rng.integers(0, 3, (count, 4))  # 0 is the blank
    others = np.where(rng.random((count, 4)) < 0.2, 1, texts)
    wanted, other = (np.eye(30, dtype=np.float32)[winners] for winners in (texts, others))
    judging = Judging({"y": Chances("elements", blank=0)}, Finds({}, {}))
    total, start = Said(), 0
    for size in sizes:
        part = slice(start, start := start + size)
        total += judging.said("y", {"y": wanted[part]}, {"y": other[part]})

    def read(winners: np.ndarray) -> str:
        letters = "".join(
            letter for at, letter in enumerate(map(str, winners)) if not at or winners[at - 1] != winners[at]
        )
        return letters.replace("0", "")

    alike = sum(read(one) == read(two) for one, two in zip(texts, others, strict=True))
    assert (total.alike, total.texts) == (alike, count)
    assert total.texts_alike == alike / count and total.found_db is None and total.nats_lost is None
