"""Products without denormals: they count as zero while a kernel runs, and on its thread alone."""

import numpy as np
import pytest

from qbench.kernels.floats.conv import choose_tile, float_conv_kernel, panel_lanes
from qbench.kernels.floats.depthwise import float_depthwise_kernel, pack_depthwise, pad_channels
from qbench.kernels.levels import Level
from qbench.kernels.pack import pack_channels, pack_weights
from tests.kernels.harness import COMPILED

SMALL = np.float32(1e-40)
BELOW = 1e-37


def product(level, x, weights, bias):
    """``x @ weights.T + bias``."""
    (pixels, depth), channels = x.shape, len(weights)
    tile, lanes = choose_tile(level, pixels, channels, depth), panel_lanes(level)
    y = np.ones((pixels, channels), np.float32)
    float_conv_kernel(level, tile)(
        x=x, zeros=0, table=0, weights=pack_weights(weights.reshape(1, channels, 1, depth), tile, lanes, 1),
        bias=pack_channels(bias, 1, tile, lanes), added=0, out=y, pixels=pixels, taps=1, depth=depth, groups=1,
        channels=channels, pitch=depth, group_pitch=0, out_pitch=channels, group_out=0, chunk=1,
        low=-np.inf, high=np.inf,
    )  # fmt: skip
    return y


def depthwise(level, x, weights, bias):
    """A window of 1 by 2 over one line of pixels, ``[pixels, channels]``."""
    pixels, channels = x.shape
    held = np.concatenate([x.reshape(-1), np.zeros(64, np.float32)])  # vectors read on behind it
    y = np.ones((pixels - 1, channels), np.float32)
    sizes = {"images": 1, "height": 1, "width": pixels, "channels": channels, "out_height": 1, "out_width": pixels - 1}
    strides = {"x_image": 0, "x_row": 0, "x_pitch": channels, "out_image": 0, "out_row": 0, "out_pitch": channels}
    window = {"kh": 1, "kw": 2, "sh": 1, "sw": 1, "dh": 1, "dw": 1, "top": 0, "left": 0}
    float_depthwise_kernel(level)(
        x=held, weights=pack_depthwise(weights), bias=pad_channels(bias), out=y, low=-np.inf, high=np.inf,
        **sizes, **strides, **window,
    )  # fmt: skip
    return y


@pytest.mark.parametrize("level", COMPILED)
def test_products_are_off_by_less_than_the_smallest_normal_number(level):
    x = np.array([[1, 2, SMALL, 0.5]] * 3, np.float32)
    weights = np.array([[SMALL, 3, 5, 0], [SMALL, SMALL, 1, SMALL]], np.float32)
    y = product(level, x, weights, np.array([0, SMALL], np.float32))
    assert (y[:, 0] == 6).all() and (abs(y[:, 1]) < BELOW).all()
    if level is not Level.PORTABLE:
        assert (y[:, 1] == 0).all()


@pytest.mark.parametrize("level", COMPILED)
def test_windows_are_off_by_less_than_the_smallest_normal_number(level):
    x = np.array([[1, SMALL]] * 6, np.float32)
    weights = np.array([[[2, SMALL]], [[1, 1]]], np.float32)
    y = depthwise(level, x, weights, np.zeros(2, np.float32))
    assert (y[:, 0] == 2).all() and (abs(y[:, 1]) < BELOW).all()
    if level is not Level.PORTABLE:
        assert (y[:, 1] == 0).all()


@pytest.mark.parametrize("level", COMPILED)
def test_whoever_calls_a_kernel_keeps_its_own_denormals(level):
    product(level, np.ones((1, 4), np.float32), np.ones((2, 4), np.float32), np.zeros(2, np.float32))
    assert np.array([SMALL]) * np.float32(0.5) > 0
