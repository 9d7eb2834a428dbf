"""Outputs that begin with time are the same as those that begin with samples."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

import qbench as qb
from qbench.evaluate.by_sample import by_sample, sample_axis
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Graph
from qbench.ir.types import TensorType
from tests.networks import node

STEPS, WIDTH, CLASSES = 12, 6, 32
RNG = np.random.default_rng(3)
WEIGHTS = (RNG.normal(size=(CLASSES, WIDTH)) * 2).astype(np.float32)
WEIGHTS[0] *= 4  # the blank wins many steps


def recognizer(time_first: bool, batch: str | int = "N") -> Graph:
    """Chances of letters at each step."""
    nodes = [
        node("nn.dense", ["x", "w"], "scores"),
        node("nn.softmax", ["scores"], "chances" if time_first else "y", axis=-1),
        *([node("transpose", ["chances"], "y", axes=(1, 0, 2))] if time_first else []),
    ]
    types = {"x": TensorType((batch, STEPS, WIDTH), "float32")}
    return build("recognizer", types, ["y"], nodes, {"w": Constant(WEIGHTS)})


def lines(count: int) -> np.ndarray:
    return RNG.normal(size=(count, STEPS, WIDTH)).astype(np.float32)


@pytest.mark.parametrize("batch", ["N", 1])
def test_reports_and_metrics_say_the_same(batch: str | int) -> None:
    seen, asked, labels = lines(16), lines(40), np.arange(40)
    given: list[Mapping[str, np.ndarray]] = []

    def metric(outputs: Mapping[str, np.ndarray], labels: np.ndarray) -> float:
        given.append(outputs)
        return float(outputs["y"][labels % 2 == 0].max(axis=-1).mean())

    said = []
    for time_first in (False, True):
        graph = recognizer(time_first, batch)
        session = qb.Session(graph, seen, (asked, labels), metric=metric, preset="int8")
        output = session.run(progress=False).output
        (loss,) = output.losses
        assert loss.texts_alike is not None and 0.3 < loss.texts_alike < 1
        said.append((loss.texts_alike, [each.sample for each in loss.worst], output.agreement, output.metric))
        assert given[-1]["y"].shape == (40, STEPS, CLASSES)
        wanted = np.concatenate([np.asarray(qb.run(graph, row[None])) for row in asked], axis=int(time_first))
        exact = next(made["y"] for made in given if np.allclose(made["y"], np.moveaxis(wanted, int(time_first), 0)))
        assert exact.shape == given[-1]["y"].shape
    assert said[0] == said[1]


def test_the_axis_is_told_by_its_size() -> None:
    assert sample_axis(recognizer(True), "y") == sample_axis(recognizer(True, 1), "y") == 1
    assert sample_axis(recognizer(False), "y") == sample_axis(recognizer(False, 1), "y") == 0
    assert sample_axis(recognizer(True, 4), "y") == 0, "a fixed batch may be anything else as well"
    array = lines(3)
    assert by_sample(recognizer(False), "y", array) is array
    np.testing.assert_array_equal(by_sample(recognizer(True), "y", array), array.transpose(1, 0, 2))
