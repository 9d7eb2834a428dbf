"""TFLite's pools, means, softmax, normalization and resizing against LiteRT's reference kernels, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.errors import GraphError
from qbench.ir.qparams import QParams
from tests.ops.one_op import SEED, WIDTH, every, few, nchw, nhwc, ours, qparams, reference, some

ROWS = st.sampled_from([(3, 10), (2, 4, 5), (7,), (2, 3, 2, 200), (1, 1)])
SIZE = st.integers(1, 8)
OUT = st.integers(1, 20)


@few
@given(
    dtype=WIDTH, seed=SEED, data=st.data(), size=st.tuples(SIZE, SIZE), window=st.tuples(SIZE, SIZE),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)), same=st.booleans(),
)  # fmt: skip
def test_average_pool(
    dtype: str, seed: int, data: st.DataObject, size: tuple[int, int], window: tuple[int, int],
    strides: tuple[int, int], same: bool,
) -> None:  # fmt: skip
    q = data.draw(qparams(dtype))
    (h, w), (kh, kw) = size, (min(window[0], size[0]), min(window[1], size[1]))
    out = [-(-n // s) if same else (n - k) // s + 1 for n, k, s in zip((h, w), (kh, kw), strides, strict=True)]
    pads = [max((o - 1) * s + k - n, 0) for o, s, k, n in zip(out, strides, (kh, kw), (h, w), strict=True)]
    padding = (pads[0] // 2, pads[1] // 2, pads[0] - pads[0] // 2, pads[1] - pads[1] // 2) if same else (0, 0, 0, 0)
    x = some(seed, dtype, (2, h, w, 3))
    wanted = reference(
        "AVERAGE_POOL_2D", [(x, q)], q, shape=(2, *out, 3), padding="SAME" if same else "VALID",
        stride_h=strides[0], stride_w=strides[1], filter_height=kh, filter_width=kw,
    )  # fmt: skip
    attrs = {"pool_size": (kh, kw), "strides": strides, "padding": padding, "semantics": "tflite"}
    np.testing.assert_array_equal(nhwc(ours("qnn.avg_pool2d", [nchw(x)], [q], q, **attrs)), wanted, strict=True)


AXES = st.sampled_from([(1, 2), (1,), (0, 2), (3,), (0, 1, 2, 3), (2, 3)])


@few
@given(dtype=WIDTH, seed=SEED, data=st.data(), shape=st.tuples(*[st.integers(1, 11)] * 4), axes=AXES)
def test_mean(dtype: str, seed: int, data: st.DataObject, shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    q, out, x = data.draw(qparams(dtype)), data.draw(qparams(dtype)), some(seed, dtype, shape)
    found = ours("qnn.mean", [x], [q], out, axes=axes, semantics="tflite")
    wanted = reference("MEAN", [(x, q)], out, [np.array(axes, np.int32)], keep_dims=True)
    np.testing.assert_array_equal(found, wanted, strict=True)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_mean_in_steps_as_large_as_a_converter_without_data_gives(dtype: str) -> None:
    q, out, x = QParams(0.01, 0, dtype), QParams(1e30, 0, dtype), some(0, dtype, (2, 3, 4, 5))
    found = ours("qnn.mean", [x], [q], out, axes=(1, 3), semantics="tflite")
    np.testing.assert_array_equal(found, reference("MEAN", [(x, q)], out, [np.array([1, 3], np.int32)], keep_dims=True))


@few
@given(dtype=st.sampled_from(["int8", "uint8"]), data=st.data(), seed=SEED, axes=AXES, keepdims=st.booleans())
def test_sum(dtype: str, data: st.DataObject, seed: int, axes: tuple[int, ...], keepdims: bool) -> None:
    """LiteRT 2.3 takes the bytes of signed integers for unsigned ones."""
    q, out, x = data.draw(qparams(dtype)), data.draw(qparams(dtype)), some(seed, dtype, (2, 3, 4, 5))
    found = ours("qnn.reduce_sum", [x], [q], out, axes=axes, keepdims=keepdims, semantics="tflite")
    wanted = reference("SUM", [(x, q)], out, [np.array(axes, np.int32)], keep_dims=keepdims)
    np.testing.assert_array_equal(found, wanted, strict=True)


def test_sum_of_other_integers_is_refused() -> None:
    q, other = QParams(0.1, 0, "int16"), QParams(0.2, 0, "int16")
    with pytest.raises(GraphError, match="TFLite sums 8-bit integers of one type, not int16 to int16"):
        ours("qnn.reduce_sum", [np.zeros((2, 3), np.int16)], [q], other, axes=(1,), semantics="tflite")


@few
@given(seed=SEED, axes=AXES, keepdims=st.booleans(), low=st.sampled_from([1, 40, 1000]))
def test_sum_of_16_bits_at_their_own_scale(seed: int, axes: tuple[int, ...], keepdims: bool, low: int) -> None:
    """By the optimized kernels: LiteRT's reference kernel adds their bytes."""
    q, x = QParams(0.1, 0, "int16"), some(seed, "int16", (2, 3, 4, 5)) // low
    found = ours("qnn.reduce_sum", [x], [q], q, axes=axes, keepdims=keepdims, semantics="tflite")
    resolver, given = "BUILTIN_WITHOUT_DEFAULT_DELEGATES", [np.array(axes, np.int32)]
    wanted = reference("SUM", [(x, q)], q, given, resolver=resolver, keep_dims=keepdims)
    np.testing.assert_array_equal(found, wanted, strict=True)


SOFTMAX_OUT = {
    "int8": QParams(1 / 256, -128, "int8"),
    "uint8": QParams(1 / 256, 0, "uint8"),
    "int16": QParams(2.0**-15, 0, "int16"),
}


@pytest.mark.parametrize(
    ("dtype", "made"),
    [("int8", "int8"), ("uint8", "uint8"), ("int16", "int16"), ("int8", "int16"), ("uint8", "int16")],
)
@few
@given(seed=SEED, data=st.data(), shape=ROWS, beta=st.sampled_from([1.0, 0.5, 2.0]))
def test_softmax(dtype: str, made: str, seed: int, data: st.DataObject, shape: tuple[int, ...], beta: float) -> None:
    narrow = st.floats(2.0**-20, 2.0**-5, width=32) if dtype == "int16" else st.floats(2.0**-16, 4.0, width=32)
    q, x = data.draw(qparams(dtype, narrow)), some(seed, dtype, shape)
    out = QParams(2.0**-16, -(2**15), "int16") if dtype != made else SOFTMAX_OUT[made]
    found = ours("qnn.softmax", [x], [q], out, beta=beta, semantics="tflite")
    wanted = reference("SOFTMAX", [(x, q)], out, shape=shape, beta=beta)
    np.testing.assert_array_equal(found, wanted, strict=True)


def test_softmax_of_a_scale_too_fine() -> None:
    with pytest.raises(GraphError, match="needs a scale above"):
        ours("qnn.softmax", [every("int8")], [QParams(1e-8, 0, "int8")], SOFTMAX_OUT["int8"], semantics="tflite")


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@few
@given(seed=SEED, data=st.data(), shape=ROWS)
def test_log_softmax(dtype: str, seed: int, data: st.DataObject, shape: tuple[int, ...]) -> None:
    q, x = data.draw(qparams(dtype, st.floats(2.0**-16, 4.0, width=32))), some(seed, dtype, shape)
    out = QParams(16 / 256, np.iinfo(dtype).max, dtype)
    found = ours("qnn.log_softmax", [x], [q], out, semantics="tflite")
    np.testing.assert_array_equal(found, reference("LOG_SOFTMAX", [(x, q)], out, shape=shape), strict=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@few
@given(seed=SEED, data=st.data(), shape=ROWS, nothing=st.booleans())
def test_l2_normalize(dtype: str, seed: int, data: st.DataObject, shape: tuple[int, ...], nothing: bool) -> None:
    q = data.draw(qparams(dtype))
    x = np.full(shape, q.zero_points[0], dtype) if nothing else some(seed, dtype, shape)
    out = QParams(1 / 128, 0 if dtype == "int8" else 128, dtype)
    found = ours("qnn.l2_normalize", [x], [q], out, semantics="tflite")
    np.testing.assert_array_equal(found, reference("L2_NORMALIZATION", [(x, q)], out, shape=shape), strict=True)


MODE = st.sampled_from(["half_pixel", "align_corners", "asymmetric"])


@few
@given(dtype=WIDTH, seed=SEED, data=st.data(), size=st.tuples(SIZE, SIZE), to=st.tuples(OUT, OUT), mode=MODE)
def test_bilinear(
    dtype: str, seed: int, data: st.DataObject, size: tuple[int, int], to: tuple[int, int], mode: str
) -> None:
    assert_bilinear_agrees(some(seed, dtype, (2, *size, 3)), data.draw(qparams(dtype)), to, mode)


def test_bilinear_just_below_half_a_step() -> None:
    x = np.array([1, 0], np.uint8).reshape(1, 1, 2, 1)
    assert_bilinear_agrees(x, QParams(1.0, 0, "uint8"), (3, 1), "half_pixel")


def assert_bilinear_agrees(x: np.ndarray, q: QParams, to: tuple[int, int], mode: str) -> None:
    attrs = {"size": to, "coordinate_transformation_mode": mode, "semantics": "tflite"}
    found = nhwc(ours("qnn.resize_linear", [nchw(x)], [q], q, **attrs))
    wanted = reference(
        "RESIZE_BILINEAR", [(x, q)], q, [np.array(to, np.int32)], shape=(len(x), *to, 3),
        half_pixel_centers=mode == "half_pixel", align_corners=mode == "align_corners",
    )  # fmt: skip
    np.testing.assert_array_equal(found, wanted, strict=True)
