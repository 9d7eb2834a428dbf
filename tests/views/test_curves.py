from __future__ import annotations

import numpy as np
import pytest

from qbench.calibration.loss import loss
from qbench.session.session import Session
from qbench.views import State, curves_view
from tests.networks import mlp, samples


def state(**override: object) -> State:
    session = Session(mlp(), samples(40))
    if override:
        session.override("relu_1", **override)
    session.run()
    return State.of(session)


def test_the_curve_has_its_minimum_at_the_choice_and_the_choice_costs_what_resolve_made():
    now = state()
    view = curves_view(now, "relu_1")
    assert view is not None
    current = [choice for choice in view.choices if choice.is_current]
    assert [choice.calibrator["name"] for choice in current] == ["mse"]
    assert current[0].threshold == view.threshold == now.quantized.encodings["relu_1"].threshold
    exact = loss(now.statistics["relu_1"], now.quantized.encodings["relu_1"].qparams)
    assert (current[0].error, current[0].clipped) == pytest.approx((exact.error, exact.clipped))
    assert view.signal == pytest.approx(exact.signal)
    mse = view.curves[0]
    assert mse.thresholds[int(np.argmin(mse.values))] == mse.best == view.threshold
    assert min(choice.error for choice in view.choices) == current[0].error


def test_rounding_and_clipping_are_what_each_threshold_costs():
    now = state()
    view = curves_view(now, "relu_1")
    assert view is not None
    mse, rounding, clipping = view.curves[:3]
    assert [curve.name for curve in view.curves] == ["mse", "rounding", "clipping", "kl", "kl"]
    assert mse.meaning == rounding.meaning == clipping.meaning
    assert np.array(rounding.values) + np.array(clipping.values) == pytest.approx(np.array(mse.values))
    statistics, grid = now.statistics["relu_1"], now.settings("relu_1").grid
    for at in (0, len(mse.values) // 2, -1):
        exact = loss(statistics, grid.qparams(statistics, mse.thresholds[at]))
        assert (rounding.values[at], clipping.values[at]) == (exact.rounding, exact.clipping)
    assert clipping.values[-1] == 0


def test_every_kind_of_kl_has_its_curve():
    view = curves_view(state(calibrator="kl_mxnet"), "relu_1")
    assert view is not None
    assert [curve.label for curve in view.curves if curve.name == "kl"] == ["kl", "kl_nvidia", "kl_mxnet"]


def test_kl_keeps_its_best_among_few_points():
    view = curves_view(state(), "relu_1")
    assert view is not None
    kl = next(curve for curve in view.curves if curve.name == "kl")
    assert len(kl.thresholds) <= 256
    assert list(kl.thresholds) == sorted(kl.thresholds)
    assert kl.thresholds[int(np.argmin(kl.values))] == kl.best


def test_a_threshold_of_the_users_is_nobodys_choice():
    view = curves_view(state(threshold=0.75), "relu_1")
    assert view is not None
    assert view.threshold == 0.75
    assert not any(choice.is_current for choice in view.choices)


def test_the_tensors_own_calibrator_is_among_the_choices():
    view = curves_view(state(calibrator={"name": "percentile", "percentile": 90.0}), "relu_1")
    assert view is not None
    assert [choice.label for choice in view.choices if choice.is_current] == ["percentile 90.0"]


def test_no_curves_where_scales_are_per_channel_and_where_nothing_is_quantized():
    assert curves_view(state(), "dense_1", "weight") is None
    assert curves_view(state(), "y") is None
