"""Depthwise convolution against NumPy's integers: every level, epilogue, window and split."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.kernels.depthwise import choose_sweep, depthwise_kernel, pack_depthwise
from qbench.kernels.epilogue import choose_epilogue
from qbench.kernels.levels import Level
from qbench.kernels.rounding import two_parts
from qbench.quant.fixed_point import quantized_multiplier
from qbench.quant.rescaling import rescale, rescale_float32, rescale_float64, rounding_shift
from qbench.quant.rounding import POWER_OF_TWO, ROUNDINGS, Rounding
from tests.kernels.harness import RUNNABLE, launch


def reference(x, weights, bias, zero_point, strides, padding, dilation):
    """int64 accumulators of (n, h, w, c) codes."""
    top, left, bottom, right = padding
    _, kernel_y, kernel_x = weights.shape
    x = np.pad(x.astype(np.int64), ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=zero_point)
    height = (x.shape[1] - (kernel_y - 1) * dilation[0] - 1) // strides[0] + 1
    width = (x.shape[2] - (kernel_x - 1) * dilation[1] - 1) // strides[1] + 1
    sums = np.zeros((len(x), height, width, x.shape[3]), np.int64) + bias
    for ky in range(kernel_y):
        for kx in range(kernel_x):
            rows = x[:, ky * dilation[0] :][:, : (height - 1) * strides[0] + 1 : strides[0]]
            taps = rows[:, :, kx * dilation[1] :][:, :, : (width - 1) * strides[1] + 1 : strides[1]]
            sums += taps * weights[:, ky, kx].astype(np.int64)
    return sums


def rescaled(sums, mantissa, shift, multiplier, rounding: Rounding):
    if rounding == "fp32_rne":
        return rescale_float32(sums, multiplier)
    if rounding == "fp64_away":
        return rescale_float64(sums, np.ldexp(mantissa.astype(np.float64), shift - 31) + multiplier)
    if rounding in POWER_OF_TWO:
        return rounding_shift(sums, 1 - shift, rounding)
    return rescale(sums, mantissa, shift, rounding)


def check(
    level: Level, rng, shape, kernel, strides, padding, dilation, rounding: Rounding, scale, threads, slack=0,
    wide=False,
):  # fmt: skip
    n, h, w, c = shape
    codes = rng.integers(0, 256, (n, h, w, c + slack), np.uint8)
    memory = np.concatenate([codes.ravel(), np.zeros(128, np.uint8)])
    weights = rng.integers(-128, 128, (c, *kernel)).astype(np.int8)
    if wide:
        weights = rng.choice(np.array([-256, -255, -129, 0, 128, 255], np.int16), (c, *kernel))
    bias = rng.integers(-5000, 5000, c).astype(np.int64)
    pad, zero_point, low, high = (int(v) for v in (*rng.integers(0, 256, 2), *np.sort(rng.integers(0, 256, 2))))
    real = scale * rng.uniform(0.5, 2, c)
    if rounding in POWER_OF_TWO:
        real = 2.0 ** np.round(np.log2(real))
    mantissa, shift = quantized_multiplier(real)
    multiplier = real.astype(np.float32)
    if rounding == "fp64_away":
        mantissa, shift, multiplier = two_parts(real)
    sums = reference(codes[..., :c], weights, bias, pad, strides, padding, dilation)
    expected = np.clip(rescaled(sums, mantissa, shift, multiplier, rounding) + zero_point, low, high)
    bound = np.abs(weights.astype(np.int64)).sum((1, 2)) * 255 + np.abs(bias)
    kind = choose_epilogue(rounding, bound, mantissa, shift, multiplier, level is Level.AVX512VNNI)
    sweep = choose_sweep(level, kernel, strides, dilation, expected.shape[1:3])
    packed, blocks = pack_depthwise(level, sweep, kind, weights, bias, mantissa, shift, multiplier, zero_point)
    _, oh, ow, _ = expected.shape
    out = rng.integers(0, 256, (n, oh, ow, c + slack)).astype(np.uint8)
    before = out.copy()
    launch(
        depthwise_kernel(level, sweep, kind, wide), threads,
        x=memory, zeros=np.full(64, pad, np.uint8), weights=packed, blocks=blocks, bias=bias, mantissa=mantissa,
        shift=shift, multiplier=multiplier, out=out, count=len(blocks), images=n, height=h, width=w, channels=c,
        out_height=oh, out_width=ow, kernel_y=kernel[0], kernel_x=kernel[1],
        stride_y=strides[0], stride_x=strides[1],
        dilation_y=dilation[0], dilation_x=dilation[1], top=padding[0], left=padding[1], pitch=c + slack,
        row=w * (c + slack), image=h * w * (c + slack), out_pitch=c + slack, out_row=ow * (c + slack),
        out_image=oh * ow * (c + slack), rounding=ROUNDINGS.index(rounding), zero_point=zero_point, low=low, high=high,
    )  # fmt: skip
    np.testing.assert_array_equal(out[..., :c], expected)
    np.testing.assert_array_equal(out[..., c:], before[..., c:])


USUAL = [
    (rounding, *window, (i + j) % 2 == 0)
    for i, rounding in enumerate(("fp32_rne", "tflite_single", "tflite_double"))
    for j, window in enumerate([(3, 1), (3, 2), (5, 1), (5, 2)])
]
USUAL += [("tflite_single", 7, 1, False), ("fp32_rne", 7, 1, True)]
"""Any two of rounding, window and width beside each other: each is a kernel to compile at each level."""


@pytest.mark.parametrize("level", RUNNABLE)
@pytest.mark.parametrize(("rounding", "kernel", "stride", "wide"), USUAL)
def test_usual_windows(level: Level, rounding: Rounding, kernel: int, stride: int, wide: bool) -> None:
    rng = np.random.default_rng(0)
    for c in (1, 15, 16, 24, 32, 33, 64, 96, 144, 200):
        p = kernel // 2
        size, strides, padding = (1, 7, 8, c), (stride, stride), (p, p, p, p)
        check(level, rng, size, (kernel, kernel), strides, padding, (1, 1), rounding, 2**-9, 1, wide=wide)


@pytest.mark.parametrize("level", RUNNABLE)
@settings(max_examples=60)
@given(data=st.data())
def test_any_window(level: Level, data) -> None:
    small = st.integers(1, 5)
    kernel = data.draw(st.sampled_from([(3, 3), (5, 5)]) | st.tuples(small, small))
    strides = data.draw(st.sampled_from([(1, 1), (2, 2)]) | st.tuples(small, small))
    dilation = data.draw(st.just((1, 1)) | st.tuples(st.integers(1, 3), st.integers(1, 3)))
    padding = data.draw(st.tuples(*[st.integers(0, 6)] * 4))
    shape = [data.draw(st.integers(0, 2))]
    for axis in (0, 1):
        least = max(1, (kernel[axis] - 1) * dilation[axis] + 1 - padding[axis] - padding[axis + 2])
        shape.append(least + data.draw(st.integers(0, 9)))
    shape.append(data.draw(st.integers(1, 200)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    check(
        level, rng, shape, kernel, strides, padding, dilation, data.draw(st.sampled_from(ROUNDINGS)),
        2.0 ** data.draw(st.integers(-16, 3)), data.draw(st.integers(1, 4)), data.draw(st.integers(0, 20)),
        data.draw(st.booleans()),
    )  # fmt: skip
