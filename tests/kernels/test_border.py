"""Quantize and dequantize, with their changes of layout, against quant.arithmetic."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qbench.ir.qparams import QParams
from qbench.kernels.border import dequantize_image_kernel, dequantize_kernel, quantize_image_kernel, quantize_kernel
from qbench.quant.arithmetic import dequantize, quantize
from tests.kernels.harness import codes, launch, stored

SIZE = st.integers(1, 9)
REALS = st.floats(-300, 300, width=32)
threads = st.integers(1, 3)


def qparams(data, dtypes) -> QParams:
    dtype = data.draw(st.sampled_from(dtypes))
    low, high = (np.iinfo(dtype).min, np.iinfo(dtype).max)
    scale = data.draw(st.sampled_from([0.5, 1.0, 0.1, 0.02, 3.7e-5, 1e-30, 1e20]))
    return QParams(scale, data.draw(st.integers(max(low, -(2**31)), min(high, 2**31 - 1))), dtype)


def beside_ties(x: np.ndarray, q: QParams) -> np.ndarray:
    """Numbers halfway between two steps, and the floats next to them: where the rules of rounding part."""
    halves = (np.trunc(x) + np.float32(0.5)) * np.float32(q.scale)
    return np.where(np.arange(x.shape[-1]) % 2, halves, np.nextafter(halves, np.float32(0)))


@pytest.mark.parametrize("ties", ["even", "away"])
@given(data=st.data(), rows=SIZE, count=st.integers(1, 70), gap=st.integers(0, 3), threads=threads)
def test_quantize(ties, data, rows, count, gap, threads) -> None:
    q = qparams(data, ["int8", "uint8", "int16", "uint16"])
    x = data.draw(hnp.arrays(np.float32, (rows, count + gap), elements=REALS | st.sampled_from([np.inf, -np.inf])))
    x[:, ::2] = beside_ties(x[:, ::2], q)
    out, offset = stored(q.dtype, (rows, count + gap))
    before = out.copy()
    with np.errstate(over="ignore"):
        launch(
            quantize_kernel(out.dtype.str[1:], ties), threads, x=x, out=out, rows=rows, count=count,
            x_pitch=count + gap, out_pitch=count + gap, scale=q.scale, zero_point=q.zero_point + offset,
            low=q.qmin + offset, high=q.qmax + offset,
        )  # fmt: skip
    np.testing.assert_array_equal(out[:, :count], codes(quantize(x[:, :count], q, ties=ties)))
    np.testing.assert_array_equal(out[:, count:], before[:, count:])


@given(
    data=st.data(), n=st.integers(0, 2), c=st.integers(1, 5), h=SIZE, w=st.integers(1, 40) | st.just(300),
    border=st.tuples(*[st.integers(0, 2)] * 4), ties=st.sampled_from(["even", "away"]),
    gap=st.integers(0, 2), threads=threads,
)  # fmt: skip
def test_quantize_to_channels_last_inside_a_border(data, n, c, h, w, border, ties, gap, threads) -> None:
    q = qparams(data, ["int8", "uint8", "int16"])
    seed = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    x = beside_ties(seed.uniform(-300, 300, (n, c, h, w)).astype(np.float32), q)
    top, left, bottom, right = border
    height, width, pitch = top + h + bottom, left + w + right, c + gap
    out, offset = stored(q.dtype, (n, height, width, pitch))
    wanted = out.copy()
    wanted[..., :c] = q.zero_point + offset
    wanted[:, top : top + h, left : left + w, :c] = codes(quantize(x, q, ties=ties)).transpose(0, 2, 3, 1)
    launch(
        quantize_image_kernel(out.dtype.str[1:], ties), threads, x=x, out=out, n=n, c=c, h=h, w=w,
        pitch=pitch, row=width * pitch, image=height * width * pitch, top=top, left=left, bottom=bottom, right=right,
        scale=q.scale, zero_point=q.zero_point + offset, low=q.qmin + offset, high=q.qmax + offset,
    )  # fmt: skip
    np.testing.assert_array_equal(out, wanted)


def integers(data, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    within = st.integers(-(2**62), 2**62) if dtype == "int64" else None
    return data.draw(hnp.arrays(dtype, shape, elements=within))


def per_channel(data, dtype: str, channels: int, axis: int) -> QParams:
    scale = data.draw(st.lists(st.floats(2**-30, 2**30, width=32), min_size=channels, max_size=channels))
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    zero = data.draw(st.lists(st.integers(max(low, -(2**30)), min(high, 2**30)), min_size=channels, max_size=channels))
    return QParams(tuple(scale), tuple(zero), dtype, axis)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@given(
    data=st.data(), outer=SIZE, channels=SIZE, inner=st.sampled_from([1, 2, 17]), gap=st.integers(0, 3), threads=threads
)
def test_dequantize(dtype, data, outer, channels, inner, gap, threads) -> None:
    q = per_channel(data, dtype, channels, 1)
    x = integers(data, dtype, (outer, channels, inner))
    source, offset = stored(dtype, (outer, channels * inner + gap))
    source[:, : channels * inner] = codes(x).reshape(outer, -1)
    out = np.zeros((outer, channels, inner), np.float32)
    launch(
        dequantize_kernel(source.dtype.str[1:]), threads, x=source, out=out, outer=outer, channels=channels,
        inner=inner, x_pitch=source.shape[1], out_pitch=channels * inner, scale=np.array(q.scales, np.float32),
        zero_point=np.array(q.zero_points, np.int32) + np.int32(offset),
    )  # fmt: skip
    np.testing.assert_array_equal(out, dequantize(x, q))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32"])
@given(data=st.data(), shape=st.tuples(st.integers(0, 2), SIZE, SIZE, SIZE), gap=st.integers(0, 3), threads=threads)
def test_dequantize_to_row_major(dtype, data, shape, gap, threads) -> None:
    n, c, h, w = shape
    q = per_channel(data, dtype, c, 1)
    x = integers(data, dtype, shape)
    source, offset = stored(dtype, (n, h, w, c + gap))
    source[..., :c] = codes(x).transpose(0, 2, 3, 1)
    out = np.zeros(shape, np.float32)
    launch(
        dequantize_image_kernel(source.dtype.str[1:]), threads, x=source, out=out, n=n, c=c, h=h, w=w, pitch=c + gap,
        row=w * (c + gap), image=prod((h, w, c + gap)), scale=np.array(q.scales, np.float32),
        zero_point=np.array(q.zero_points, np.int32) + np.int32(offset),
    )  # fmt: skip
    np.testing.assert_array_equal(out, dequantize(x, q))
