from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from qbench.errors import DataError, QParamsError
from qbench.ir.dtypes import DType, integer_range, numpy_dtype
from qbench.ir.qparams import QParams
from qbench.quant.arithmetic import add, dequantize, quantize, requantize, subtract
from qbench.quant.rounding import POWER_OF_TWO, ROUNDINGS, Rounding

STORED: list[DType] = ["int4", "uint4", "int8", "uint8", "int16", "uint16"]
ONNX: dict[str, int] = {name: getattr(TensorProto, name.upper()) for name in (*STORED, "int32")}

ANY_SCALE = [mode for mode in ROUNDINGS if mode not in POWER_OF_TWO]

floats = st.floats(width=32, allow_nan=False)
scales = st.floats(min_value=2**-126, max_value=2**120, width=32)


def onnx_model(op: str, q: QParams) -> onnx.ModelProto:
    """QuantizeLinear or DequantizeLinear with the given qparams."""
    shape = [] if q.axis is None else [len(q.scales)]
    kinds = [TensorProto.FLOAT, ONNX[q.dtype]]
    given, made = kinds if op == "QuantizeLinear" else reversed(kinds)
    node = helper.make_node(op, ["x", "scale", "zero_point"], ["y"], axis=q.axis or 0)
    graph = helper.make_graph(
        [node],
        op,
        [helper.make_tensor_value_info("x", given, None)],
        [helper.make_tensor_value_info("y", made, None)],
        [
            helper.make_tensor("scale", TensorProto.FLOAT, shape, q.scales),
            helper.make_tensor("zero_point", ONNX[q.dtype], shape, q.zero_points),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def runtime(op: str, q: QParams, x: Any) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    model = onnx_model(op, q).SerializeToString()
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def per_axis(dtype: DType, rng: np.random.Generator, channels: int) -> QParams:
    low, high = integer_range(dtype)
    scale = tuple(map(float, np.exp2(rng.uniform(-20, 4, channels)).astype(np.float32)))
    return QParams(scale, tuple(map(int, rng.integers(low, high + 1, channels))), dtype, axis=1)


def reals(rng: np.random.Generator) -> Any:
    """Values of all sizes, ties, infinities and the ends of float32."""
    x = rng.normal(size=(6, 5, 200)) * np.exp2(rng.uniform(-24, 12, (6, 5, 200)))
    x[0] = np.round(x[0] * 4) / 4
    x[1, :, :6] = [np.inf, -np.inf, 3.4e38, -3.4e38, 1e-45, -0.0]
    return x.astype(np.float32)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("seed", range(3))
def test_quantize_is_onnxruntimes_bit_for_bit(dtype: DType, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = reals(rng)
    low, high = integer_range(dtype)
    for q in (per_axis(dtype, rng, 5), QParams(float(rng.uniform(1e-3, 1)), int(rng.integers(low, high + 1)), dtype)):
        np.testing.assert_array_equal(quantize(x, q), runtime("QuantizeLinear", q, x), strict=True)


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_quantize_to_four_bits_is_onnxs(dtype: DType) -> None:
    rng = np.random.default_rng(0)
    x = np.clip(reals(rng), -1e3, 1e3)  # the reference overflows where onnxruntime saturates
    for q in (per_axis(dtype, rng, 5), QParams(0.37, 3, dtype)):
        want = ReferenceEvaluator(onnx_model("QuantizeLinear", q)).run(None, {"x": x})[0]  # type: ignore[index]
        actual = quantize(x, q)
        assert actual.dtype == numpy_dtype(dtype)
        np.testing.assert_array_equal(actual.astype(np.int8), np.asarray(want).astype(np.int8))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32"])
def test_dequantize_is_onnxruntimes_bit_for_bit(dtype: DType) -> None:
    rng = np.random.default_rng(0)
    low, high = integer_range(dtype)
    x = rng.integers(low // 2, high // 2, (6, 5, 200)).astype(numpy_dtype(dtype))
    q = per_axis(dtype, rng, 5)
    if dtype == "int32":  # ONNX has no zero points for it
        q = QParams(q.scale, (0,) * 5, dtype, axis=1)
    np.testing.assert_array_equal(dequantize(x, q), runtime("DequantizeLinear", q, x), strict=True)


@given(floats, scales, st.sampled_from(STORED), st.data())
def test_quantize_is_the_rounded_float32_quotient(x: float, scale: float, dtype: DType, data: st.DataObject) -> None:
    low, high = integer_range(dtype)
    zero_point = data.draw(st.integers(low, high))
    with np.errstate(over="ignore"):
        quotient = float(np.float32(x) / np.float32(scale))
    if np.isinf(quotient):
        want = high if x > 0 else low
    else:
        want = min(max(round(Fraction(quotient)) + zero_point, low), high)
    assert int(quantize(np.float32(x), QParams(scale, zero_point, dtype))) == want


@given(arrays(np.float32, array_shapes(min_dims=0, min_side=0), elements=floats), st.sampled_from(STORED))
def test_quantize_keeps_the_shape_and_names_the_dtype(x: Any, dtype: DType) -> None:
    result = quantize(x, QParams(0.5, 1, dtype))
    assert (result.shape, result.dtype) == (x.shape, numpy_dtype(dtype))
    assert dequantize(result, QParams(0.5, 1, dtype)).dtype == np.float32


@pytest.mark.parametrize("dtype", [*STORED, "int32"])
def test_every_integer_survives_a_round_trip(dtype: DType) -> None:
    low, high = integer_range(dtype)
    integers = np.unique(np.linspace(max(low, -(2**21)), min(high, 2**21), 70_000).astype(np.int64))
    q = QParams(0.1, 0, dtype)
    stored = integers.astype(numpy_dtype(dtype))
    np.testing.assert_array_equal(quantize(dequantize(stored, q), q), stored, strict=True)


@given(floats, st.sampled_from(STORED))
def test_a_real_number_in_range_comes_back_within_half_a_step(x: float, dtype: DType) -> None:
    q = QParams(0.125, 0 if dtype.startswith("i") else 3, dtype)
    low, high = (0.125 * (end - q.zero_points[0]) for end in (q.qmin, q.qmax))
    back = float(dequantize(quantize(np.float32(x), q), q))
    assert abs(back - min(max(x, low), high)) <= 0.125 / 2


def test_narrow_leaves_the_smallest_integer_unused() -> None:
    x = np.array([-9.0, -1.0, 9.0])
    assert quantize(x, QParams(0.01, 0, "int8"), narrow=True).tolist() == [-127, -100, 127]
    assert quantize(x, QParams(0.01, 0, "int8")).tolist() == [-128, -100, 127]


def test_nan_cannot_be_quantized() -> None:
    with pytest.raises(DataError, match="NaN"):
        quantize([1.0, np.nan], QParams(1.0, 0, "int8"))


def test_float16_and_float64_are_quantized_as_float32() -> None:
    x = np.array([0.1, 0.3, 1e6])
    q = QParams(0.1, 0, "int8")
    np.testing.assert_array_equal(quantize(x, q), quantize(x.astype(np.float32), q))
    assert quantize(np.array([0.3], np.float16), q).tolist() == [3]


@pytest.mark.parametrize("rounding", ANY_SCALE)
@pytest.mark.parametrize("dtype", ["int4", "uint8", "int16", "int32"])
def test_requantize_is_within_a_step_of_the_real_number(rounding: Rounding, dtype: DType) -> None:
    rng = np.random.default_rng(0)
    acc = rng.integers(-(2**20), 2**20, (3, 4, 50)).astype(np.int32)
    in_scale = rng.uniform(1e-5, 1e-4, 4)
    low, _ = integer_range(dtype)
    out = QParams(0.05, max(low, -3), dtype)
    result = requantize(acc, in_scale, out, rounding, axis=1, in_zero_point=7)
    real = (acc.astype(np.int64) - 7) * in_scale.reshape(1, 4, 1) / np.float64(np.float32(0.05))
    assert result.dtype == numpy_dtype(dtype)
    assert np.all(np.abs(result.astype(np.int64) - np.clip(real + out.zero_points[0], out.qmin, out.qmax)) <= 1)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_per_axis_is_per_tensor_channel_by_channel(rounding: Rounding) -> None:
    acc = np.random.default_rng(0).integers(-(2**12), 2**12, (4, 100)).astype(np.int32)
    in_scale = [0.5, 0.25, 2.0, 1.0]
    out = QParams((1.0, 2.0, 4.0, 8.0), (0, 1, 2, 3), "uint8", axis=0)
    result = requantize(acc, in_scale, out, rounding, axis=0)
    for c in range(4):
        alone = QParams(out.scales[c], out.zero_points[c], "uint8")
        np.testing.assert_array_equal(result[c], requantize(acc[c], in_scale[c], alone, rounding), strict=True)


def test_power_of_two_modes_only_shift() -> None:
    acc, out = np.array([-6, -2, 2, 6, 10], np.int32), QParams(1.0, 0, "int8")
    assert requantize(acc, 0.25, out, "pow2_half_up").tolist() == [-1, 0, 1, 2, 3]
    assert requantize(acc, 0.25, out, "pow2_half_even").tolist() == [-2, 0, 0, 2, 2]
    with pytest.raises(QParamsError, match="power of two"):
        requantize(acc, 0.3, out, "pow2_half_up")


def test_fp32_rne_computes_its_multiplier_in_float32() -> None:
    # s_x * s_w / s_y with each step rounded to float32, as onnxruntime and XNNPACK do.
    s_x, s_w, s_y = np.float32(0.0123), np.float32(0.00456), np.float32(0.0789)
    multiplier = s_x * s_w / s_y
    acc = np.arange(-(2**24), 2**24, 1009)
    want = np.rint(acc.astype(np.float32) * multiplier).astype(np.int64)
    out = QParams(float(s_y), 0, "int16")
    actual = requantize(acc, np.float64(s_x) * np.float64(s_w), out, "fp32_rne")
    np.testing.assert_array_equal(actual, np.clip(want, -32768, 32767))


@pytest.mark.parametrize("in_scale", [np.nan, np.inf, 0.0, -1.0])
def test_a_scale_that_means_nothing_is_an_error(in_scale: float) -> None:
    with pytest.raises(QParamsError, match="positive and finite"):
        requantize(np.array([1]), in_scale, QParams(1.0, 0, "int8"), "tflite_single")


def test_scales_by_channel_need_an_axis() -> None:
    with pytest.raises(QParamsError, match="2 scales or zero points need an axis"):
        requantize(np.zeros((2, 2), np.int32), [1.0, 2.0], QParams(1.0, 0, "int8"), "tflite_single")


@pytest.mark.parametrize("rounding", ANY_SCALE)
@given(st.integers(0, 255), st.integers(0, 255))
def test_add_and_subtract_are_two_requantizes_and_a_sum(rounding: Rounding, x: int, y: int) -> None:
    lhs, rhs, out = QParams(0.11, 3, "uint8"), QParams(0.07, 250, "uint8"), QParams(0.13, 90, "uint8")
    wide = QParams(0.13, 0, "int32")
    a = int(requantize(np.array([x]), lhs.scales[0], wide, rounding, in_zero_point=3)[0])
    b = int(requantize(np.array([y]), rhs.scales[0], wide, rounding, in_zero_point=250)[0])
    arguments = (np.array([x], np.uint8), np.array([y], np.uint8), lhs, rhs, out, rounding)
    assert add(*arguments).tolist() == [min(max(a + b + 90, 0), 255)]
    assert subtract(*arguments).tolist() == [min(max(a - b + 90, 0), 255)]
