from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from onnxruntime.quantization.quant_utils import compute_scale_zp

from qbench.errors import QParamsError
from qbench.ir.dtypes import DType, integer_range, numpy_dtype
from qbench.ir.qparams import QParams
from qbench.quant.arithmetic import dequantize, quantize
from qbench.quant.choose import from_range, per_axis, power_of_two

MAX, TINY = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)

ends = st.floats(width=32, allow_nan=False, allow_infinity=False)
dtypes = st.sampled_from(["int4", "uint4", "int8", "uint8", "int16", "uint16"])


@given(ends, ends, st.sampled_from(["int8", "uint8", "int16", "uint16"]))
@example(0.0, 0.0, "uint8")
@example(-MAX, MAX, "int8")
@example(1e-45, 1e-45, "uint8")
@example(-TINY, TINY, "int16")
def test_asymmetric_ranges_are_onnxruntimes(a: float, b: float, dtype: DType) -> None:
    low, high = min(a, b), max(a, b)
    limits = np.array(integer_range(dtype), numpy_dtype(dtype))
    zero_point, scale = compute_scale_zp(np.float32(low), np.float32(high), limits[0], limits[1])
    assert from_range(low, high, dtype, symmetric=False) == QParams(float(scale), int(zero_point), dtype)


@given(ends, ends, dtypes, st.booleans(), st.booleans())
@example(-MAX, MAX, "int4", False, True)
@example(-MAX, MAX, "uint4", True, False)
def test_a_range_is_covered_and_zero_is_exact(a: float, b: float, dtype: DType, symmetric: bool, narrow: bool) -> None:
    low, high = min(a, b, 0.0), max(a, b, 0.0)
    q = from_range(min(a, b), max(a, b), dtype, symmetric, narrow)
    zero_point = q.zero_points[0]
    assert float(dequantize(quantize(np.float32(0.0), q, narrow), q)) == 0.0
    assert q.qmin + (narrow and not symmetric) <= zero_point <= q.qmax
    step = q.scales[0]
    slack = step * (0.5 + 1e-3)  # the zero point is rounded, so the ends move by up to half a step
    assert step * (q.qmin + narrow - zero_point) <= low + slack
    assert high - slack <= step * (q.qmax - zero_point)


@pytest.mark.parametrize(
    ("dtype", "scale", "zero_point"),
    [("int8", 2 / 127, 0), ("uint8", 2 / 127, 128), ("int16", 2 / 32767, 0), ("int4", 2 / 7, 0), ("uint4", 2 / 7, 8)],
)
@pytest.mark.parametrize("narrow", [False, True])
def test_symmetric_ranges_have_zero_in_the_middle(dtype: DType, scale: float, zero_point: int, narrow: bool) -> None:
    assert from_range(-2.0, 1.0, dtype, symmetric=True, narrow=narrow) == QParams(scale, zero_point, dtype)
    assert from_range(0.5, 2.0, dtype, symmetric=True, narrow=narrow) == QParams(scale, zero_point, dtype)


@given(st.floats(2**-90, 2**90, width=32), st.lists(st.floats(-1, 1), min_size=1))
def test_symmetric_int8_weights_lie_within_127(threshold: float, parts: list[float]) -> None:
    weights = threshold * np.array([1.0, -1.0, *parts])
    integers = quantize(weights, from_range(-threshold, threshold, "int8", symmetric=True))
    assert integers[:2].tolist() == [127, -127]
    assert np.abs(integers.astype(int)).max() == 127


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("high", [0.0, 1e-45, 1e-40, TINY])
def test_ranges_of_nothing_have_scale_one(high: float, symmetric: bool) -> None:
    q = from_range(-high, high, "uint8", symmetric)
    assert q == QParams(1.0, 128 if symmetric else 0, "uint8")
    assert float(dequantize(quantize(np.float32(high), q), q)) == 0.0


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("dtype", ["int4", "uint4", "int8", "uint8", "int16"])
def test_the_largest_range_has_a_finite_scale(dtype: DType, symmetric: bool) -> None:
    assert np.isfinite(from_range(-MAX, MAX, dtype, symmetric).scales[0])


def test_a_constant_tensor_is_exact() -> None:
    for value in (5.0, -0.3):
        q = from_range(value, value, "uint8", symmetric=False)
        assert float(dequantize(quantize(np.float32(value), q), q)) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize(("low", "high"), [(np.nan, 1.0), (0.0, np.inf), (-np.inf, 0.0), (2.0, 1.0)])
def test_a_range_is_finite_and_in_order(low: float, high: float) -> None:
    with pytest.raises(QParamsError, match="must be finite, the lower end first"):
        from_range(low, high, "int8", symmetric=False)


@given(st.lists(st.tuples(ends, ends), min_size=1, max_size=5), dtypes, st.booleans())
def test_per_axis_is_from_range_for_each_index(pairs: list[tuple[float, float]], dtype: DType, symmetric: bool) -> None:
    ranges = [(min(pair), max(pair)) for pair in pairs]
    q = per_axis([low for low, _ in ranges], [high for _, high in ranges], dtype, 1, symmetric)
    assert q.axis == 1
    for index, (low, high) in enumerate(ranges):
        alone = from_range(low, high, dtype, symmetric)
        assert q.zero_points[index] == alone.zero_points[0]
        if max(-low, high) >= TINY * 65535:
            assert q.scales[index] == alone.scales[0]


def test_a_channel_of_zeros_takes_the_widest_scale() -> None:
    q = per_axis([-1.0, 0.0, -2.54, -1e-42], [1.27, 0.0, 1.0, 1e-42], "int8", 0, symmetric=True)
    assert q == QParams((0.01, 0.02, 0.02, 0.02), (0, 0, 0, 0), "int8", axis=0)
    assert per_axis([0.0, 0.0], [0.0, 0.0], "int8", 0, symmetric=True).scales == (1.0, 1.0)


def test_per_axis_takes_as_many_lower_as_upper_ends() -> None:
    for lows, highs in (([0.0], [1.0, 2.0]), ([], [])):
        with pytest.raises(QParamsError, match="lower and"):
            per_axis(lows, highs, "int8", 0, symmetric=True)


@given(st.floats(2**-149, 2**120, width=32))
def test_power_of_two_scales_are_the_next_above(scale: float) -> None:
    raised = power_of_two(QParams(scale, 3, "uint8"))
    value = raised.scales[0]
    assert np.frexp(value)[0] == 0.5
    assert scale <= value < 2 * scale
    assert raised == QParams(value, 3, "uint8")
    assert power_of_two(raised) == raised


def test_power_of_two_scales_per_axis() -> None:
    q = QParams((0.3, 0.5, 3.0), (0, 0, 0), "int8", axis=2)
    assert power_of_two(q) == QParams((0.5, 0.5, 4.0), (0, 0, 0), "int8", axis=2)
