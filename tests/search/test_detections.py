"""A detector whose scores share the scale of boxes in pixels: what is blamed, and what each measure of a trial says."""

from __future__ import annotations

import numpy as np
import pytest

from qbench.data.dataset import Dataset
from qbench.ir.build import build
from qbench.ir.frozen import Constant, FrozenMap
from qbench.ir.graph import Graph, Node
from qbench.ir.types import TensorType
from qbench.search.answers import Answers
from qbench.session.session import Session

RNG = np.random.default_rng(0)
X = RNG.normal(size=(48, 20, 8)).astype(np.float32)


def detector() -> Graph:
    """Of each of 20 places a box of some hundred pixels, and two scores that are high at few of them."""
    weights = {"boxes.w": RNG.normal(0, 80, (4, 8)), "scores.w": RNG.normal(0, 0.8, (2, 8)), "offset": np.full(2, -3.0)}
    nodes = [Node("boxes", "nn.dense", ("x", "boxes.w"), ("boxes",))]
    nodes += [Node("raw", "nn.dense", ("x", "scores.w"), ("raw",)), Node("less", "add", ("raw", "offset"), ("less",))]
    nodes += [Node("scores", "sigmoid", ("less",), ("scores",))]
    nodes += [Node("y", "concatenate", ("boxes", "scores"), ("y",), FrozenMap({"axis": 2}))]
    constants = {name: Constant(array.astype(np.float32)) for name, array in weights.items()}
    return build("net", {"x": TensorType(("N", 20, 8), "float32")}, ("y",), nodes, constants)


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(detector(), X[:32], X[32:], preset="int8")


def test_what_it_costs_that_scores_share_the_scale_of_boxes_is_seen(session: Session) -> None:
    plain = session.run(progress=False).output.sqnr_db
    assert plain is not None and plain > 25, "boxes are good, and squares of scores next to nothing"
    table = session.repairs(progress=False)
    split = table[table["what"] == "split the scales of"].iloc[0]
    assert split["where"] == "y" and split["gain_db_probe"] > 20 and split["gain_db"] > 20


def test_trials_and_all_data_are_measured_where_something_is_found(session: Session) -> None:
    quantized, data = session.quantized(), Dataset(detector(), X[32:])
    answers = Answers(data)
    exact, made = answers.exact(quantized.prepared), answers.of(quantized)
    assert made is not None
    wanted, given = (np.concatenate(some["y"]).astype(np.float64) for some in (exact, made))
    weights = np.maximum(wanted[..., 4:].max(-1), given[..., 4:].max(-1))[..., np.newaxis]
    error = weights * (wanted - given) ** 2
    scores = (weights * wanted**2)[..., 4:].sum() / (error[..., 4:].sum() / 2)
    boxes = (weights * wanted**2)[..., :4].sum() / error[..., :4].sum()
    by_hand = 10 * np.log10(min(scores, boxes))
    assert answers.ratio(quantized.prepared, made) == pytest.approx(by_hand, rel=1e-6)
    assert session.search(seconds=1e-9).rows[0].sqnr_db == pytest.approx(by_hand, rel=1e-6)
