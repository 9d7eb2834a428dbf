"""Quantized convolutions, straight and transposed, against nested loops over whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.exact import conv2d, conv2d_transpose, each, requantized
from tests.conformance.graphs import Array, node, per_axis, q, run

MODES = ("tflite_double", "tflite_single", "tvm_upward", "tvm_tonearest")
CASES: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    # name: (data shape, weight shape, attributes)
    "valid": ((2, 1, 2, 4), (3, 1, 2, 2), {}),
    "1x1": ((2, 4, 2, 4), (3, 4, 1, 1), {}),
    "1x1, stride 2": ((1, 4, 5, 4), (3, 4, 1, 1), {"strides": (2, 2)}),
    "same padding": ((1, 3, 5, 5), (2, 3, 3, 3), {"padding": (1, 1, 1, 1)}),
    "padding on two sides": ((1, 3, 5, 4), (2, 3, 2, 2), {"padding": (0, 0, 1, 1)}),
    "padding wider than the kernel": ((1, 1, 2, 2), (2, 1, 2, 2), {"padding": (3, 2, 3, 2)}),
    "dilation": ((1, 2, 6, 6), (2, 2, 2, 3), {"dilation": (2, 2)}),
    "dilation and padding": ((1, 4, 6, 6), (2, 4, 3, 3), {"dilation": (2, 1), "padding": (2, 1, 2, 1)}),
    "strides that differ": ((1, 2, 7, 8), (2, 2, 3, 3), {"strides": (1, 3)}),
    "anisotropic, as in TFLite's test": ((1, 1, 3, 6), (1, 1, 2, 2), {"strides": (1, 3)}),
    "wide and shallow": ((1, 1, 1, 32), (4, 1, 1, 7), {"padding": (0, 3, 0, 3)}),
    "deep": ((1, 130, 3, 3), (5, 130, 3, 3), {"padding": (1, 1, 1, 1)}),
    "depthwise": ((2, 4, 4, 4), (4, 1, 2, 2), {"groups": 4}),
    "depthwise, multiplier 2": ((1, 3, 4, 4), (6, 1, 2, 2), {"groups": 3}),
    "depthwise, one channel": ((1, 1, 4, 4), (2, 1, 3, 3), {"groups": 1}),
    "groups": ((1, 6, 4, 4), (4, 3, 3, 3), {"groups": 2, "padding": (1, 1, 1, 1)}),
}
TYPES = [("uint8", "uint8"), ("int8", "int8"), ("uint8", "int8")]


def codes(dtype: str, shape: tuple[int, ...], seed: int) -> Array:
    low, high = (0, 256) if dtype == "uint8" else (-128, 128)
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def accumulated(x: Array, w: Array, zero_points: tuple[int, int], attrs: dict[str, Any]) -> Array:
    types = x.dtype.name, w.dtype.name
    qparams = {"x": q(0.5, zero_points[0], types[0]), "w": q(0.25, zero_points[1], types[1]), "y": q(0.125, 0, "int32")}
    return run([node("qnn.conv2d", ["x", "w"], "y", **attrs)], {"x": x}, qparams, {"w": w})


@pytest.mark.parametrize("zero_points", [(0, 0), (5, 0), (0, 9), (5, 9)])
@pytest.mark.parametrize("types", TYPES, ids="-".join)
@pytest.mark.parametrize("case", CASES)
def test_accumulators(case: str, types: tuple[str, str], zero_points: tuple[int, int]) -> None:
    shape, kernel, attrs = CASES[case]
    x, w = codes(types[0], shape, 1), codes(types[1], kernel, 2)
    centred = x.astype(np.int64) - zero_points[0], w.astype(np.int64) - zero_points[1]
    np.testing.assert_array_equal(accumulated(x, w, zero_points, attrs), conv2d(*centred, **attrs))


@pytest.mark.parametrize("types", TYPES, ids="-".join)
def test_zero_points_of_each_output_channel(types: tuple[str, str]) -> None:
    x, w = codes(types[0], (1, 3, 4, 4), 1), codes(types[1], (3, 3, 2, 2), 2)
    zero_points = (1, 0, 100)
    weight = per_axis((0.5, 0.25, 2.0), 0, types[1], zero_points)
    sums = per_axis([0.5 * s for s in weight.scales], 1, "int32")
    qparams = {"x": q(0.5, 3, types[0]), "w": weight, "y": sums}
    got = run([node("qnn.conv2d", ["x", "w"], "y")], {"x": x}, qparams, {"w": w})
    centred = w.astype(np.int64) - np.array(zero_points).reshape(-1, 1, 1, 1)
    np.testing.assert_array_equal(got, conv2d(x.astype(np.int64) - 3, centred))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("out", [0.9, 0.004, 60.0])  # multipliers from above one to far below
@pytest.mark.parametrize("case", ["same padding", "depthwise, multiplier 2", "1x1", "dilation"])
def test_bias_requantize_and_clip(case: str, out: float, mode: str) -> None:
    shape, kernel, attrs = CASES[case]
    x, w = codes("uint8", shape, 3), codes("int8", kernel, 4)
    bias = np.random.default_rng(5).integers(-3000, 3000, kernel[0]).astype(np.int32)
    weight = per_axis(np.random.default_rng(6).uniform(0.01, 0.2, kernel[0]).tolist(), 0)
    data, target = q(0.05, 20, "uint8"), q(out, 30, "uint8")
    scales = [data.scales[0] * s for s in weight.scales]
    sums = per_axis(scales, 1, "int32")
    steps = [
        node("qnn.conv2d", ["x", "w"], "acc", **attrs),
        node("nn.bias_add", ["acc", "b"], "sum"),
        node("qnn.requantize", ["sum"], "wide", rounding=mode),
        node("clip", ["wide"], "y", a_min=30.0, a_max=200.0),
    ]
    qparams = {"x": data, "w": weight, "acc": sums, "b": per_axis(scales, 0, "int32"), "sum": sums}
    got = run(steps, {"x": x}, qparams | {"wide": target, "y": target}, {"w": w, "b": bias})
    exact = conv2d(x.astype(np.int64) - 20, w.astype(np.int64), **attrs) + bias.reshape(-1, 1, 1)
    for c, scale in enumerate(scales):
        real = scale / target.scales[0]
        want = each(lambda v, r=real: min(max(requantized(v, r, 30, "uint8", mode), 30), 200), exact[:, c])
        np.testing.assert_array_equal(got[:, c], want)


@pytest.mark.parametrize("types", TYPES, ids="-".join)
def test_channels_last_data_by_transposes(types: tuple[str, str]) -> None:
    x, w = codes(types[0], (1, 5, 4, 3), 7), codes(types[1], (2, 3, 3, 3), 8)
    steps = [
        node("transpose", ["x"], "nchw", axes=(0, 3, 1, 2)),
        node("qnn.conv2d", ["nchw", "w"], "acc"),
        node("qnn.requantize", ["acc"], "z", rounding="tvm_upward"),
        node("transpose", ["z"], "y", axes=(0, 2, 3, 1)),
    ]
    data, weight, out = q(0.5, 3, types[0]), q(0.25, 2, types[1]), q(30.0, 1, "int8")
    qparams = {"x": data, "nchw": data, "w": weight, "acc": q(0.125, 0, "int32"), "z": out, "y": out}
    got = run(steps, {"x": x}, qparams, {"w": w})
    exact = conv2d(x.transpose(0, 3, 1, 2).astype(np.int64) - 3, w.astype(np.int64) - 2)
    want = each(lambda v: requantized(v, 0.125 / 30.0, 1, "int8", "tvm_upward"), exact).transpose(0, 2, 3, 1)
    np.testing.assert_array_equal(got, want)


@settings(max_examples=40)
@given(data=st.data())
def test_any_shape(data: st.DataObject) -> None:
    def draw(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    groups, kernel, dilation = draw(1, 3), (draw(1, 3), draw(1, 3)), (draw(1, 2), draw(1, 2))
    depth, outputs, padding = draw(1, 3), draw(1, 3) * groups, tuple(draw(0, 2) for _ in range(4))
    least = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    shape = (draw(1, 2), depth * groups, least[0] + draw(0, 3), least[1] + draw(0, 3))
    attrs = {"strides": (draw(1, 3), draw(1, 3)), "padding": padding, "dilation": dilation, "groups": groups}
    types, zero_points = data.draw(st.sampled_from(TYPES)), (draw(0, 127), draw(0, 127))
    x, w = codes(types[0], shape, draw(0, 99)), codes(types[1], (outputs, depth, *kernel), draw(0, 99))
    centred = x.astype(np.int64) - zero_points[0], w.astype(np.int64) - zero_points[1]
    np.testing.assert_array_equal(accumulated(x, w, zero_points, attrs), conv2d(*centred, **attrs))


TRANSPOSED: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "valid": ((1, 2, 3, 3), (2, 3, 2, 2), {}),
    "stride 2": ((1, 2, 3, 4), (2, 3, 3, 3), {"strides": (2, 2)}),
    "stride 2, same size": ((1, 3, 4, 4), (3, 2, 3, 3), {"strides": (2, 2), "padding": (0, 0, 1, 1)}),
    "padding": ((2, 1, 5, 5), (1, 2, 3, 3), {"padding": (1, 1, 1, 1)}),
    "output padding": (
        (1, 2, 3, 3),
        (2, 1, 3, 3),
        {"strides": (2, 2), "padding": (1, 1, 1, 1), "output_padding": (1, 1)},
    ),
    "strides that differ": ((1, 2, 3, 3), (2, 2, 2, 4), {"strides": (1, 3)}),
    "groups": ((1, 4, 3, 3), (4, 2, 2, 2), {"groups": 2, "strides": (2, 1)}),
}


@pytest.mark.parametrize("zero_points", [(0, 0), (5, 0), (5, 9)])
@pytest.mark.parametrize("types", TYPES, ids="-".join)
@pytest.mark.parametrize("case", TRANSPOSED)
def test_transposed(case: str, types: tuple[str, str], zero_points: tuple[int, int]) -> None:
    shape, kernel, attrs = TRANSPOSED[case]
    x, w = codes(types[0], shape, 1), codes(types[1], kernel, 2)
    qparams = {"x": q(0.5, zero_points[0], types[0]), "w": q(0.25, zero_points[1], types[1]), "y": q(0.125, 0, "int32")}
    got = run([node("qnn.conv2d_transpose", ["x", "w"], "y", **attrs)], {"x": x}, qparams, {"w": w})
    centred = x.astype(np.int64) - zero_points[0], w.astype(np.int64) - zero_points[1]
    np.testing.assert_array_equal(got, conv2d_transpose(*centred, **attrs))
