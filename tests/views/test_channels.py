from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from qbench.ir.frozen import Constant
from qbench.ir.qparams import QParams
from qbench.quant.arithmetic import dequantize, quantize
from qbench.session.session import Session
from qbench.views import State, channels_view, histogram_view
from qbench.views.channels import bins_for
from tests.networks import mlp, samples

WEIGHTS = arrays(np.float32, array_shapes(min_dims=2, max_dims=4, max_side=5), elements=st.floats(-1e5, 1e5, width=32))


@given(WEIGHTS, st.integers(0, 1))
def test_every_value_is_in_the_bin_of_its_channel(weight: np.ndarray, axis: int):
    many = weight.shape[axis]
    q = QParams(tuple(0.5 + i for i in range(many)), (0,) * many, "int8", axis)
    view = channels_view(Constant(weight), axis, q, tuple(float(i + 1) for i in range(many)))
    assert view is not None
    error = dequantize(quantize(weight, q), q).astype(np.float64) - weight
    for c in range(many):
        values = weight.take(c, axis).ravel().astype(np.float64)
        width, counts = view.widths[c], view.counts[c]
        assert (view.mins[c], view.maxs[c], view.zeros[c]) == (values.min(), values.max(), (values == 0).sum())
        assert (view.size, sum(counts), len(counts)) == (values.size, values.size, bins_for(many))
        expected = np.zeros(len(counts), int)
        np.add.at(expected, np.floor(values / width).astype(int) + len(counts) // 2, 1)
        assert list(counts) == expected.tolist()
        assert np.abs(values).max() < width * len(counts) / 2 <= max(2 * np.abs(values).max(), 1)
        noise = (error.take(c, axis) ** 2).sum()
        assert view.sqnr_db[c] == (pytest.approx(10 * np.log10((values**2).sum() / noise)) if noise else np.inf)


def test_fewer_bins_the_more_channels():
    assert [bins_for(many) for many in (1, 100, 128, 129, 1000, 2000, 50_000)] == [512, 512, 512, 256, 64, 32, 32]


def test_a_weight_shows_its_channels_whether_or_not_they_have_scales_of_their_own():
    session = Session(mlp(), samples(20))
    own = histogram_view(State.of(session), "dense_1", "weight").by_channel
    encoding = session.encodings["dense_1.weight"]
    assert (own.axis, own.scales, own.thresholds) == (0, encoding.qparams.scales, encoding.threshold)
    session.override("dense_1.weight", axis="tensor")
    session.run()
    shared = histogram_view(State.of(session), "dense_1", "weight").by_channel
    assert set(shared.scales) == {max(own.scales)}
    assert len(shared.scales) == 8
    assert min(shared.sqnr_db) < min(own.sqnr_db)
    assert shared.counts is own.counts  # worked out once


def test_zeros_and_nothing_at_all():
    q = QParams(1.0, 0, "int8")
    view = channels_view(Constant(np.zeros((3, 4), np.float32)), 0, q, (1.0,))
    assert view is not None
    assert (view.zeros, view.mins, view.maxs) == ((4, 4, 4), (0.0,) * 3, (0.0,) * 3)
    assert channels_view(Constant(np.zeros((3, 0), np.float32)), 0, q, (1.0,)) is None


def test_a_channel_of_several_blocks_is_drawn_with_the_widest() -> None:
    q = QParams((1.0, 2.0, 4.0, 3.0), (0, 0, 0, 0), "int8", 0, 2)
    view = channels_view(Constant(np.ones((2, 4), np.float32)), 0, q, (10.0, 20.0, 40.0, 30.0))
    assert view is not None
    assert view.scales == (2.0, 4.0) and view.thresholds == (20.0, 40.0)
