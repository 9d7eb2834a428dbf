"""Quantize and dequantize, per tensor and per channel, in float32 as ONNX and TVM define them."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conformance.exact import RANGES, all_codes, half_away, saturate
from tests.conformance.graphs import node, per_axis, q, run


def quantized(x: float, scale: float, zero_point: int, dtype: str, ties: str) -> int:
    ratio = float(np.float32(x) / np.float32(scale))
    clipped = min(max(ratio, -(2.0**40)), 2.0**40)
    rounded = round(Fraction(clipped)) if ties == "even" else half_away(Fraction(clipped))
    return saturate(rounded + zero_point, dtype)


@pytest.mark.parametrize("ties", ["even", "away"])
@pytest.mark.parametrize(("dtype", "zero_point"), [("uint8", 127), ("int8", -1), ("int16", 30), ("int32", 0)])
@given(
    scale=st.floats(2.0**-10, 2.0**3, width=32),
    values=st.lists(st.floats(-1e4, 1e4, width=32), min_size=1, max_size=30),
    steps=st.lists(st.integers(-300, 300), max_size=10),
)
def test_quantize(dtype: str, zero_point: int, ties: str, scale: float, values: list[float], steps: list[int]) -> None:
    values = [*values, *((step + 0.5) * scale for step in steps)]  # ties, as far as float32 has them
    x = np.array([values], np.float32)
    attrs = {} if ties == "even" else {"ties": ties}
    got = run([node("qnn.quantize", ["x"], "y", **attrs)], {"x": x}, {"y": q(scale, zero_point, dtype)})
    want = [quantized(value, scale, zero_point, dtype, ties) for value in x[0].tolist()]
    assert got[0].tolist() == want


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_quantize_per_channel(axis: int, dtype: str) -> None:
    x = np.random.default_rng(axis).normal(scale=40, size=(3, 3, 3, 3)).astype(np.float32)
    scales, zero_points = (0.5, 0.03, 2.0), (0, 100, 3)
    made = per_axis(scales, axis, dtype, zero_points)
    got = run([node("qnn.quantize", ["x"], "y")], {"x": x}, {"y": made})
    for index in itertools.product(range(3), repeat=4):
        c = index[axis]
        assert got[index] == quantized(float(x[index]), made.scales[c], zero_points[c], dtype, "even")


@pytest.mark.parametrize(("dtype", "zero_point"), [("uint8", 127), ("int8", -1), ("int16", 30), ("int32", 0)])
@pytest.mark.parametrize("scale", [0.5, 0.0123, 3.7, 1e-20])
def test_dequantize(dtype: str, zero_point: int, scale: float) -> None:
    low, high = RANGES[dtype]
    codes = all_codes(dtype) if dtype != "int32" else np.array([low, -(2**24) - 1, -1, 0, 1, 2**24 + 1, high], np.int32)
    qparams = q(scale, zero_point, dtype)
    got = run([node("qnn.dequantize", ["x"], "y")], {"x": codes[None]}, {"x": qparams})
    factor = np.float32(qparams.scales[0])
    want = [np.float32(code - zero_point) * factor for code in codes.tolist()]
    assert got[0].tolist() == want


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_dequantize_per_channel(axis: int) -> None:
    codes = np.random.default_rng(axis).integers(-128, 128, (3, 3, 3)).astype(np.int8)
    scales, zero_points = (0.5, 0.0123, 3.7), (1, -2, 3)
    qparams = per_axis(scales, axis, "int8", zero_points)
    got = run([node("qnn.dequantize", ["x"], "y")], {"x": codes}, {"x": qparams})
    for index in itertools.product(range(3), repeat=3):
        c = index[axis]
        assert got[index] == np.float32(int(codes[index]) - zero_points[c]) * np.float32(qparams.scales[c])
