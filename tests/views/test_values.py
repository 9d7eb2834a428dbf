from __future__ import annotations

import base64
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from PIL import Image

from qbench.evaluate.values import Values
from qbench.ir.qparams import QParams
from qbench.quant.arithmetic import dequantize, quantize
from qbench.views import Picture, values_view

FLOATS = arrays(np.float32, array_shapes(min_dims=2, max_dims=4, max_side=6), elements=st.floats(-1e5, 1e5, width=32))
Q = QParams(0.5, 3, "uint8")


def of(exact: np.ndarray, axis: int | None = 1, q: QParams = Q) -> Values:
    return Values("conv", "activation", "conv", exact, dequantize(quantize(exact, q), q), q, axis)


def pixels(picture: Picture) -> np.ndarray:
    with Image.open(io.BytesIO(base64.b64decode(picture.png))) as image:
        return np.asarray(image)


@settings(max_examples=30)
@given(FLOATS, st.sampled_from([0.25, 64.0]))
def test_channels_and_errors_are_what_numpy_says(exact: np.ndarray, scale: float):
    values = of(exact, q=QParams(scale, 7, "uint8"))
    view = values_view(values)
    error = values.quantized.astype(np.float64) - exact
    assert sorted(one.channel for one in view.channels) == [*range(exact.shape[1])]
    ratios = [np.inf if one.sqnr_db is None else one.sqnr_db for one in view.channels]
    assert ratios == sorted(ratios)
    for one in view.channels:
        channel = exact.take(one.channel, 1).astype(np.float64)
        noise, signal = (error.take(one.channel, 1) ** 2).sum(), (channel**2).sum()
        five = np.percentile(channel, [0, 25, 50, 75, 100])
        assert [one.min, one.low, one.median, one.high, one.max] == pytest.approx(five, rel=1e-4)
        if noise and signal:
            assert one.sqnr_db == pytest.approx(10 * np.log10(signal / noise), abs=1e-3)
    assert sum(view.counts) == error.size
    ends = view.start + view.width * np.arange(len(view.counts) + 1)
    assert ends[-1] == pytest.approx(-ends[0])
    assert np.abs(error).max(initial=0) <= -ends[0] * (1 + 1e-6)
    assert view.points == tuple(zip(short(exact), short(values.quantized), strict=True))


def short(array: np.ndarray) -> list[float]:
    return [float(f"{one:.5g}") for one in np.moveaxis(array.astype(np.float64), 1, 0).ravel()]


@pytest.mark.parametrize("axis", [1, 3])
def test_maps_are_of_the_worst_channels_in_both_models_and_the_difference(axis: int):
    exact = np.random.default_rng(0).uniform(-1, 60, (3, 8, 9, 7) if axis == 1 else (3, 9, 7, 8)).astype(np.float32)
    values = of(exact, axis)
    view = values_view(values, sample=2)
    assert [one.channel for one in view.maps] == [one.channel for one in view.channels[:6]]
    channel = view.maps[0].channel
    both = [np.moveaxis(one, axis, 1)[2, channel].astype(np.float64) for one in (exact, values.quantized)]
    low, high = min(map(np.min, both)), max(map(np.max, both))
    for picture, one in zip((view.maps[0].exact, view.maps[0].quantized), both, strict=True):
        assert np.abs(pixels(picture) - (one - low) / (high - low) * 255).max() <= 0.5 + 1e-9
    error = both[1] - both[0]
    red, blue = (pixels(view.maps[0].difference)[..., i].astype(int) for i in (0, 2))
    assert view.maps[0].largest == pytest.approx(np.abs(error).max())
    sure = np.abs(error) > 0.02 * view.maps[0].largest
    assert np.array_equal((red > blue)[sure], (error > 0)[sure])  # orange: too large; blue: too small


def test_one_channel_in_detail():
    exact = np.random.default_rng(0).normal(size=(4, 5, 6, 6)).astype(np.float32)
    view = values_view(of(exact), sample=99, channel=3)
    assert (view.channel, view.sample, view.samples, sum(view.counts)) == (3, 3, 4, 4 * 36)
    assert [one.channel for one in view.maps] == [3]
    assert {a for a, _ in view.points} == {float(f"{one:.5g}") for one in exact[:, 3].astype(np.float64).ravel()}
    assert values_view(of(exact), channel=5).channel is None


def test_few_numbers_are_sent_of_many_values():
    view = values_view(of(np.random.default_rng(0).normal(size=(8, 3, 200, 200)).astype(np.float32)))
    assert len(view.points) <= 1500
    assert max(view.maps[0].exact.width, view.maps[0].exact.height) <= 96
    assert len(str(view.to_dict())) < 200_000


@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (0, 4), (2, 3, 4)])
def test_tensors_that_are_no_images(shape: tuple[int, ...]):
    view = values_view(of(np.ones(shape, np.float32), 1 if len(shape) > 1 else None))
    assert view.maps == ()
    assert sum(view.counts) == np.prod(shape)


def test_infinities_and_nan_are_drawn():
    odd = np.array([[np.inf, -np.inf, np.nan, 1]], np.float32)
    view = values_view(Values("mask", "activation", "mask", odd, odd, None, 1))
    assert sum(view.counts) == 4
