"""Dense layers and matrix products, their zero points, biases and scales per channel."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.conformance.exact import each, requantized
from tests.conformance.graphs import Array, node, per_axis, q, run

MODES = ("tflite_double", "tflite_single", "tvm_upward", "tvm_tonearest")
ZERO_POINTS = [(0, 0), (5, 0), (0, 7), (5, 7)]


def codes(dtype: str, shape: tuple[int, ...], seed: int) -> Array:
    low, high = (0, 256) if dtype == "uint8" else (-128, 128)
    return np.random.default_rng(seed).integers(low, high, shape).astype(dtype)


def matmul(x: Array, w: Array, zero_points: tuple[int, int]) -> Array:
    """Rows of x times rows of w, in whole numbers."""
    y = np.zeros((len(x), len(w)), np.int64)
    for i, j in itertools.product(range(len(x)), range(len(w))):
        y[i, j] = sum((int(a) - zero_points[0]) * (int(b) - zero_points[1]) for a, b in zip(x[i], w[j], strict=True))
    return y


@pytest.mark.parametrize("types", [("uint8", "uint8"), ("int8", "int8"), ("uint8", "int8")], ids="-".join)
@pytest.mark.parametrize("zero_points", ZERO_POINTS)
def test_dense_accumulates(types: tuple[str, str], zero_points: tuple[int, int]) -> None:
    x, w = codes(types[0], (3, 70), 1), codes(types[1], (5, 70), 2)
    qparams = {"x": q(0.5, zero_points[0], types[0]), "w": q(0.25, zero_points[1], types[1]), "y": q(0.125, 0, "int32")}
    got = run([node("qnn.dense", ["x", "w"], "y")], {"x": x}, qparams, {"w": w})
    np.testing.assert_array_equal(got, matmul(x, w, zero_points))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("scale", [0.4, 0.0017, 9.0])  # multipliers from far below to above one
def test_dense_with_bias_and_requantize(mode: str, per_channel: bool, scale: float) -> None:
    x, w = codes("uint8", (4, 33), 3), codes("int8", (3, 33), 4)
    bias = np.array([-70_000, 3, 12_345], np.int32)
    scales = (0.02, 0.5, 0.0003) if per_channel else (0.02,) * 3
    weight = per_axis(scales, 0) if per_channel else q(0.02)
    data, out = q(scale, 9, "uint8"), q(0.7, -3)
    sums = [data.scales[0] * s for s in (weight.scales if per_channel else weight.scales * 3)]
    acc = per_axis(sums, 1, "int32") if per_channel else q(sums[0], 0, "int32")
    steps = [
        node("qnn.dense", ["x", "w"], "acc"),
        node("nn.bias_add", ["acc", "b"], "sum"),
        node("qnn.requantize", ["sum"], "y", rounding=mode),
    ]
    b = per_axis(sums, 0, "int32") if per_channel else q(sums[0], 0, "int32")
    qparams = {"x": data, "w": weight, "acc": acc, "b": b, "sum": acc, "y": out}
    got = run(steps, {"x": x}, qparams, {"w": w, "b": bias})
    exact = matmul(x, w, (9, 0)) + bias
    for c in range(3):
        real = sums[c] / out.scales[0]
        want = each(lambda v, r=real: requantized(v, r, -3, "int8", mode), exact[:, c])
        np.testing.assert_array_equal(got[:, c], want)


@pytest.mark.parametrize("zero_points", ZERO_POINTS)
@pytest.mark.parametrize(
    ("lhs", "rhs", "transposed"),
    [
        ((1, 2, 3), (1, 3, 4), (False, False)),
        ((3, 2, 4), (3, 5, 4), (False, True)),
        ((3, 4, 2), (3, 4, 5), (True, False)),
        ((2, 1, 3, 4), (1, 3, 4, 2), (False, False)),
        ((5, 4), (2, 4, 3), (False, False)),
    ],
)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_batch_matmul(
    dtype: str, lhs: tuple[int, ...], rhs: tuple[int, ...], transposed: tuple[bool, bool], zero_points: tuple[int, int]
) -> None:
    x, w = codes(dtype, lhs, 5), codes(dtype, rhs, 6)
    step = node("qnn.batch_matmul", ["x", "w"], "y", transpose_lhs=transposed[0], transpose_rhs=transposed[1])
    qparams = {"x": q(0.5, zero_points[0], dtype), "w": q(0.25, zero_points[1], dtype), "y": q(0.125, 0, "int32")}
    got = run([step], {"x": x, "w": w}, qparams)
    left = np.swapaxes(x, -1, -2) if transposed[0] else x
    right = w if transposed[1] else np.swapaxes(w, -1, -2)  # rows to be multiplied with rows
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left, right = (np.broadcast_to(a, (*batch, *a.shape[-2:])) for a in (left, right))
    assert got.shape == (*batch, left.shape[-2], right.shape[-2])
    for index in np.ndindex(*batch):
        np.testing.assert_array_equal(got[index], matmul(left[index], right[index], zero_points))
