"""What outputs lose, against sums over all samples at once."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qbench as qb
from qbench.evaluate.losses import MOST_SAMPLES, Losses, losses
from qbench.report.report import Report
from tests.networks import mlp, samples


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 99))
def test_any_split_gives_what_all_samples_at_once_give(sizes: list[int], seed: int) -> None:
    rng, count = np.random.default_rng(seed), sum(sizes)
    x = rng.normal(size=(count, 3, 5)).astype(np.float32)
    y = (x + rng.normal(scale=0.1, size=x.shape)).astype(np.float32)
    total, start = Losses(), 0
    for size in sizes:
        total += losses(x[start : start + size], y[start : start + size], start, start + size)
        start += size
    found, reals, others = total.of("out"), x.astype(np.float64).ravel(), y.astype(np.float64).ravel()
    assert found.sqnr_db == pytest.approx(10 * math.log10(reals @ reals / ((reals - others) ** 2).sum()))
    assert found.cosine == pytest.approx(reals @ others / np.linalg.norm(reals) / np.linalg.norm(others))
    ratios = [10 * math.log10((a**2).sum() / ((a - b) ** 2).sum()) for a, b in zip(x.astype(float), y, strict=True)]
    assert [one.sample for one in found.worst] == np.argsort(ratios, kind="stable")[:MOST_SAMPLES].tolist()
    np.testing.assert_allclose([one.sqnr_db for one in found.worst], sorted(ratios)[:MOST_SAMPLES], rtol=1e-5)


def test_zeros_and_infinities_have_no_angle() -> None:
    zeros = np.zeros((2, 3), np.float32)
    assert losses(zeros, zeros, 0, 2).of("y").cosine is None
    masked = np.asarray([[0, -np.inf], [0, -np.inf]], np.float32)
    assert losses(masked, masked, 0, 2).of("y").sqnr_db is None


def test_a_report_says_it_and_keeps_it(tmp_path) -> None:
    graph = mlp()
    report = qb.Session(graph, samples(40), samples(20, seed=2)).run(progress=False)
    (loss,) = report.output.losses
    assert loss.name == graph.outputs[0]
    assert loss.sqnr_db == pytest.approx(report.output.sqnr_db, abs=1e-6)
    assert 0.9 < loss.cosine <= 1
    assert len(loss.worst) == MOST_SAMPLES
    report.save(tmp_path / "report.json")
    assert Report.load(tmp_path / "report.json").output.losses == report.output.losses
