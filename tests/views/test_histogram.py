from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qbench.calibration.statistics import Statistics
from qbench.session.session import Session
from qbench.views import State, histogram_view
from qbench.views.histogram import merged_bins
from tests.engine.networks import mlp, samples

VALUES = st.floats(-1e6, 1e6, width=32)


@given(arrays(np.float32, st.integers(1, 60), elements=VALUES), st.sampled_from([1, 2, 7, 64, 512]))
def test_bins_hold_each_value_once(data: np.ndarray, most: int):
    start, width, counts = merged_bins(Statistics.of(data), most=max(most, 2))
    assert len(counts) <= max(most, 2)
    expected = np.zeros(len(counts), int)
    np.add.at(expected, (np.floor(data.astype(np.float64) / width) - start / width).astype(int), 1)
    assert list(counts) == expected.tolist()
    assert counts[0]
    assert counts[-1]


def test_a_per_channel_weight_shows_its_widest_and_narrowest_channel():
    session = Session(mlp(), samples(20))
    view = histogram_view(State.of(session), "dense_1", "weight")
    assert view is not None
    largest = np.abs(session.prepared.constants["dense_1.weight"].array).max(axis=1)
    assert (view.channels, view.scale, view.zero_point) == (8, None, None)
    assert (view.threshold, view.narrowest) == pytest.approx((largest.max(), largest.min()))
    assert view.count == 8 * 16


def test_an_override_moves_the_threshold_and_the_range():
    session = Session(mlp(), samples(20))
    session.override("dense_1", threshold=0.5)
    session.run()
    for layer in ("dense_1", "bias_1", "relu_1"):
        view = histogram_view(State.of(session), layer)
        assert view is not None
        assert (view.tensor, view.threshold, view.calibrator) == ("relu_1", 0.5, "override")
        assert (view.low, view.high) == pytest.approx((0.0, 0.5))


def test_a_scale_that_was_given_shows_what_the_integers_reach():
    session = Session(mlp(), samples(20))
    session.override("relu_1", scale=0.25, zero_point=10)
    session.run()
    view = histogram_view(State.of(session), "relu_1")
    assert view is not None
    assert (view.scale, view.zero_point, view.low, view.high) == (0.25, 10, -2.5, 61.25)
    assert view.threshold == 61.25


def test_a_layer_in_float_has_no_histogram():
    assert histogram_view(State.of(Session(mlp(), samples(20))), "y") is None
