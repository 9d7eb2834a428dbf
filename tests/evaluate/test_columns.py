"""Errors of a few numbers, each beside how it varies, against sums by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qbench as qb
from qbench.evaluate.columns import Columns, powers_of, samples_apart
from qbench.evaluate.measure import Deviation
from qbench.ir.build import build
from qbench.ir.frozen import Constant
from qbench.ir.graph import Node
from qbench.ir.types import TensorType
from tests.graphs import graph_of
from tests.networks import node

RNG = np.random.default_rng(0)
WANTED = (RNG.normal(size=(40, 3)) * [5, 0.01, 2000] + [290, 0, -500]).astype(np.float32)


@given(cuts=st.lists(st.integers(0, 40), max_size=4), share=st.floats(1e-3, 2))
def test_each_error_counts_beside_the_variance_of_its_number(cuts: list[int], share: float) -> None:
    """However the samples are divided."""
    given = WANTED + (share * WANTED.std(axis=0) * RNG.normal(size=WANTED.shape)).astype(np.float32)
    by_hand = np.mean(np.square(given.astype(np.float64) - WANTED).mean(axis=0) / WANTED.astype(np.float64).var(axis=0))
    ends = [0, *sorted(cuts), 40]
    parts = [Columns.of(WANTED[i:j], given[i:j]) for i, j in pairwise(ends)]
    assert sum(parts, Columns()).sqnr_db == pytest.approx(-10 * np.log10(by_hand), abs=1e-3)
    (found,) = Columns.of(WANTED, given).apart(powers_of([WANTED[:13], WANTED[13:]]))
    assert found.sqnr_db == pytest.approx(-10 * np.log10(by_hand), abs=1e-3)


@pytest.mark.parametrize("axis", [1, 2])
def test_series_of_a_few_numbers_count_step_by_step(axis: int) -> None:
    """Speed, share and rate over time: each step is a sample of three numbers."""
    wanted, given = WANTED.reshape(1, 40, 3), WANTED.reshape(1, 40, 3) + np.float32(0.5)
    assert wanted.size >= 64
    found = Columns.of(*(np.moveaxis(array, 2, axis) for array in (wanted, given)))
    assert found == Columns.of(wanted[0], given[0]) and found.samples == 40
    assert Columns.of(np.zeros((9, 8, 9))) == Columns(), "numbers of no kind"


def test_numbers_that_do_not_vary_count_beside_themselves_and_zeros_nowhere() -> None:
    wanted = np.stack([np.full(20, 50.0), np.zeros(20), np.arange(20.0) / 20], axis=1)
    assert powers_of([wanted]) == pytest.approx((2500.0, 0.0, np.arange(20).var() / 400))
    assert Columns.of(wanted, wanted + np.array([5, 7, 0])).sqnr_db == pytest.approx(-10 * np.log10(25 / 2500 / 2))


def test_numbers_that_vary_about_as_much_count_together() -> None:
    """Scores of classes, one of which is never chosen."""
    wanted = RNG.normal(size=(200, 3)) * [1, 0.5, 1 / 16]
    own = wanted.var(axis=0)
    assert powers_of([wanted]) == pytest.approx((own.mean(),) * 3)
    assert powers_of([wanted / [1, 1, 4]]) == pytest.approx((own[:2].mean(), own[:2].mean(), own[2] / 16))


def test_large_samples_do_not_hide_small_ones() -> None:
    """Each sample is lost as far as its noise reaches how it varies; one that does not vary loses nothing."""
    wanted = np.stack([level * (1 + 0.01 * np.sin(np.arange(12))) for level in (5, 50, 2000, 0)])
    given = wanted + np.array([[1], [0.1], [1], [1]]) * np.sign(RNG.normal(size=wanted.shape))
    varied = 1e-4 * np.sin(np.arange(12)).var() * np.square([5, 50, 2000])
    by_hand = np.minimum(np.array([1, 0.01, 1]) / varied, 1).sum() / 4 / 4  # of which 6 dB less will do
    numbers, each = Columns.of(wanted, given).apart(powers_of([wanted] * 2))
    assert each.sqnr_db == pytest.approx(-10 * np.log10(by_hand)) and numbers.sqnr_db is not None
    assert numbers.sqnr_db > each.sqnr_db + 20
    assert samples_apart(wanted, given) == each
    assert Columns.of(wanted[:, :7], given[:, :7]).apart((1.0,) * 7)[1:] == (), "too few numbers to vary"
    assert samples_apart(wanted[:, :7], given[:, :7]) == Deviation()


@pytest.mark.parametrize(
    "outputs",
    [[WANTED[:2]], [WANTED, WANTED[:, :2]], [RNG.normal(size=(40, 64))], [np.where(WANTED > 300, np.inf, WANTED)]],
    ids=["few samples", "other numbers", "many numbers", "not finite"],
)
def test_what_cannot_be_told(outputs: list[np.ndarray]) -> None:
    assert powers_of(outputs) == ()


@pytest.mark.parametrize("count", [3, 64])
def test_a_temperature_is_not_lost_in_its_offset(count: int) -> None:
    """290 K that vary by 5: an output in 8 bits leaves 35 dB and next to nothing of them; the default keeps them, by
    a few samples, too."""
    weights = RNG.normal(size=(2, 6)).astype(np.float32) * np.array([[2], [0.02]], np.float32)
    nodes = [Node("layer", "nn.dense", ("x", "w"), ("z",)), Node("offset", "add", ("z", "b"), ("y",))]
    data = RNG.normal(size=(64, 6)).astype(np.float32)
    graph = graph_of({"x": data[:1]}, nodes, "y", w=weights, b=np.array([290, -0.5], np.float32))
    losses = {}
    for preset in ("int8", "default"):
        session = qb.Session(graph, calibration=data[:count], evaluation=data, preset=preset)
        (losses[preset],) = session.run().output.losses
    assert losses["int8"].sqnr_db is not None and losses["int8"].sqnr_db > 30
    assert losses["int8"].varies_db is not None and losses["int8"].varies_db < 10
    assert "dB of how it varies" in str(qb.Session(graph, data[:count], data, preset="int8").run())
    real = data.astype(np.float64) @ weights.T
    made = np.concatenate([qb.run(session.graph, row[None]) for row in data]).astype(np.float64) - [290, -0.5]
    assert np.max(np.square(made - real).mean(axis=0) / real.var(axis=0)) < 0.01


@pytest.mark.parametrize("horizon", [24, 96])
def test_forecasts_of_low_series_are_not_lost_beside_high_ones(horizon: int) -> None:
    """The last value and what a layer adds to it; levels are decades apart, and each series moves by a hundredth."""
    rng = np.random.default_rng(5)
    level = 10 ** rng.uniform(0, 3.3, (96, 1))
    data = (level * (1 + 0.01 * np.cumsum(rng.normal(size=(96, 32)), axis=1))).astype(np.float32)
    cut = {"begin": (31,), "end": (32,), "strides": (1,), "axes": (1,)}
    nodes = [
        node("strided_slice", ["x"], "last", **cut),
        node("subtract", ["x", "last"], "moved"),
        node("nn.dense", ["moved", "w"], "ahead"),
        node("add", ["ahead", "last"], "y"),
    ]
    weights = {"w": Constant((rng.normal(size=(horizon, 32)) / 6).astype(np.float32))}
    graph = build("forecast", {"x": TensorType(("N", 32), "float32")}, ["y"], nodes, weights)
    lost = {}
    for preset in ("int8", "default"):
        session = qb.Session(graph, data[:64], data[64:], preset=preset)
        session.run(progress=False)
        exact, made = (
            np.concatenate([np.asarray(qb.run(which, row[None]), np.float64) for row in data[64:]])
            for which in (graph, session.graph)
        )
        lost[preset] = np.minimum(np.square(made - exact).mean(axis=1) / exact.var(axis=1), 1).mean()
    assert lost["int8"] > 0.2 and lost["default"] < 0.04
