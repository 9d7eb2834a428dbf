"""Ranges of a few samples reach further than these, and no further than values can."""

from __future__ import annotations

import numpy as np
import pytest

import qbench as qb
from qbench.ir.build import build
from qbench.ir.graph import Graph
from qbench.ir.types import TensorType
from qbench.quant.config import QuantConfig
from tests.networks import mlp, node

IN_8_BITS = QuantConfig.of_preset("int8")
X = np.random.default_rng(0).normal(size=(40, 4, 6)).astype(np.float32)


def elements(shape: tuple[int | str, ...] = ("N", 4, 6)) -> Graph:
    """A relu, one that ends at 1.5, and a sigmoid."""
    nodes = [node("nn.relu", ["x"], "up"), node("clip", ["x"], "y", a_min=-0.5, a_max=1.5)]
    nodes.append(node("sigmoid", ["x"], "share"))
    return build("net", {"x": TensorType(shape, "float32")}, ["up", "y", "share"], nodes, {})


def ranges(count: int, config: QuantConfig = IN_8_BITS, graph: Graph | None = None) -> dict[str, tuple[float, float]]:
    encodings = qb.Session(graph or elements(), X[:count], config=config).encodings
    return {name: encoding.qparams.ranges[0] for name, encoding in encodings.items()}


def length(ends: tuple[float, float]) -> float:
    return ends[1] - ends[0]


@pytest.mark.parametrize(("count", "times"), [(1, 2), (2, 2), (4, 1.5), (8, 1.25), (15, 1 + 2 / 15), (16, 1), (40, 1)])
def test_the_fewer_samples_the_further(count: int, times: float) -> None:
    found, seen = ranges(count), X[:count].astype(np.float64)
    assert length(found["x"]) == pytest.approx(times * (seen.max() - seen.min()), 0.05)  # little is clipped of these
    assert found["up"] == pytest.approx((0, times * seen.max()), 0.05), "below 0 there is nothing"
    assert found["y"][0] >= -0.51 and found["y"][1] <= 1.51, "nor beyond a clip"
    assert found["share"] == pytest.approx((0, 1), abs=0.1) and found["share"][1] <= 1.001
    encoding = qb.Session(elements(), X[:count], config=IN_8_BITS).encodings["x"]
    said = f"reaches {times:.3g} times as far, since {count} sample"
    assert (said in encoding.reason) is (times > 1)
    assert encoding.threshold == pytest.approx(times * np.abs(seen).max(), 0.1)


def test_what_somebody_says_is_what_it_is() -> None:
    few = X[:4].astype(np.float64)
    largest = ranges(4, IN_8_BITS.with_value("activations.calibrator", {"name": "max"}))["x"]
    assert largest == pytest.approx((few.min(), few.max()), abs=0.02)
    session = qb.Session(elements(), X[:4], config=IN_8_BITS)
    session.override("x", threshold=0.75)
    assert session.encodings["x"].qparams.ranges[0] == pytest.approx((-0.75, 0.75), abs=0.01)


def test_nobody_knows_how_many_samples_an_open_size_makes() -> None:
    few = X[:4].astype(np.float64)
    found = ranges(4, graph=elements(("N", "T", 6)))["x"]
    assert length(found) <= length((few.min(), few.max())) * 1.01


def test_powers_of_two_stay_some() -> None:
    config = IN_8_BITS.with_value("rounding", "pow2_half_even")
    for encoding in qb.Session(elements(), X[:4], config=config).encodings.values():
        assert np.log2(encoding.qparams.scales[0]) % 1 == 0


def test_less_is_lost_of_other_data() -> None:
    """Medians over 15 networks that were calibrated on two samples, beside ranges that are those of the samples."""
    lost = {"mse": list[float](), "max": list[float]()}
    for seed in range(15):
        data = np.random.default_rng(100 + seed).normal(size=(60, 12)).astype(np.float32)
        for name, found in lost.items():
            config = IN_8_BITS.with_value("activations.calibrator", {"name": name})
            (loss,) = qb.Session(mlp(seed), data[:2], data[2:], config=config).run(progress=False).output.losses
            found.append(loss.sqnr_db or 0.0)
    assert np.median(lost["mse"]) > np.median(lost["max"]) + 3
