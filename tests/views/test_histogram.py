from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qbench.calibration.statistics import Statistics
from qbench.kernels.tally import BINS
from qbench.session.session import Session
from qbench.views import HistogramView, State, histogram_view
from tests.networks import mlp, samples

VALUES = st.floats(-1e6, 1e6, width=32)


@given(arrays(np.float32, st.integers(1, 60), elements=VALUES), st.sampled_from([2, 7, 64, 512]))
def test_bins_hold_each_value_once_however_coarse(data: np.ndarray, most: int):
    view = drawn(data).coarser(most)
    assert len(view.counts) <= most
    expected = np.zeros(len(view.counts), int)
    np.add.at(expected, (np.floor(data.astype(np.float64) / view.width) - view.start / view.width).astype(int), 1)
    assert list(view.counts) == expected.tolist()
    assert view.counts[0]
    assert view.counts[-1]


def drawn(data: np.ndarray) -> HistogramView:
    """A view of these values, all else made up."""
    statistics = Statistics.of(data)
    used = np.flatnonzero(statistics.counts)
    return HistogramView(
        tensor="t", part="activation", start=(int(used[0]) - BINS) * statistics.bin_width, width=statistics.bin_width,
        counts=tuple(statistics.counts[used[0] : used[-1] + 1].tolist()), count=len(data), zeros=0,
        min=statistics.min, max=statistics.max, low=0.0, high=1.0, threshold=1.0, scale=1.0, zero_point=0, channels=1,
        narrowest=1.0, dtype="int8", symmetric=True, narrow=False, power_of_two=False, reason="", calibrator="max",
        by_channel=None,
    )  # fmt: skip


def test_the_view_has_calibrations_own_bins():
    state = State.of(Session(mlp(), samples(20)))
    view, statistics = histogram_view(state, "relu_1"), state.statistics["relu_1"]
    assert view is not None
    first = round(view.start / view.width) + BINS
    assert list(view.counts) == statistics.counts[first : first + len(view.counts)].tolist()
    assert (sum(view.counts), view.width) == (statistics.count, statistics.bin_width)
    assert view.by_channel is None


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
