"""Integer ops against Python integers and fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from qbench.errors import GraphError
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ops.float.image import Resize2d
from qbench.ops.float.pool import AvgPool2d
from qbench.ops.integer.prelu import IntegerPrelu
from qbench.ops.integer.products import IntegerBatchMatmul, IntegerDense
from qbench.ops.integer.table import IntegerTable
from qbench.ops.integer.window import IntegerSumPool2d
from qbench.ops.numeric.exact import exact_dtype, to_accumulator
from qbench.ops.qnn.requantize import QnnAdd, QnnSubtract
from qbench.ops.qnn.window import QnnResizeLinear, QnnUnary
from qbench.quant.arithmetic import dequantize, quantize
from qbench.quant.rounding import Rounding
from qbench.quant.semantics import Semantics

CODES = np.arange(256, dtype=np.uint8)
scales = st.floats(1e-3, 1e2)
zero_points = st.integers(0, 255)


@given(scales, scales, scales, zero_points, zero_points, zero_points, st.booleans())
def test_a_sum_is_rounded_once(sa: float, sb: float, so: float, za: int, zb: int, zo: int, subtract: bool) -> None:
    """All 65,536 pairs lie within half a step (and the 31 bits of the multipliers) of the real result."""
    q = (QParams(sa, za, "uint8"), QParams(sb, zb, "uint8"))
    out = QParams(so, zo, "uint8")
    op = (QnnSubtract if subtract else QnnAdd)(qin=q, qout=(out,), rounding="tflite_single")
    lhs, rhs = CODES[:, np.newaxis], CODES[np.newaxis, :]
    real = (lhs.astype(float) - za) * q[0].scales[0] / out.scales[0]
    real = real + (-1 if subtract else 1) * (rhs.astype(float) - zb) * q[1].scales[0] / out.scales[0]
    error = np.abs(op.compute(lhs, rhs).astype(float) - np.clip(real + zo, 0, 255))
    assert error.max() <= 0.5 + 2**-20 * max(1.0, np.abs(real).max())


@pytest.mark.parametrize("rounding", ["pow2_half_up", "pow2_half_even"])
def test_power_of_two_sums_are_exact_fractions(rounding: Rounding) -> None:
    q = (QParams(0.25, 10, "uint8"), QParams(0.0625, 200, "uint8"))
    op = QnnAdd(qin=q, qout=(QParams(0.5, 128, "uint8"),), rounding=rounding)
    result = op.compute(CODES[:, np.newaxis], CODES[np.newaxis, :])
    for lhs, rhs in [(0, 0), (11, 202), (13, 198), (9, 206), (255, 255), (8, 200), (12, 204)]:
        real = Fraction(lhs - 10, 2) + Fraction(rhs - 200, 8)
        rounded = round(real) if rounding == "pow2_half_even" else math.floor(real + Fraction(1, 2))
        assert result[lhs, rhs] == min(max(rounded + 128, 0), 255)


@pytest.mark.parametrize(
    ("dtype", "semantics", "computed"),
    [("int16", "tvm", True), ("int16", "onnx", False), ("uint8", "tvm", False), ("uint8", "onnx", False)],
)
def test_prelu_is_computed_where_tables_would_be_large(dtype: str, semantics: Semantics, computed: bool) -> None:
    """All integers there are, within half a step of the real result; by a table, float32's rounding beside it."""
    info, slopes = np.iinfo(dtype), np.array([0.25, -0.1, 0.0, 1.3], np.float32)
    source, target = QParams(3e-4, 0 if dtype == "int16" else 113, dtype), QParams(5e-4, 7, dtype)
    op = QnnUnary(
        function="nn.prelu", slopes=tuple(slopes.tolist()), axis=0, semantics=semantics, qin=(source,), qout=(target,)
    )
    every = np.broadcast_to(np.arange(info.min, info.max + 1).astype(dtype), (4, info.max - info.min + 1))
    assert isinstance(op.lower(TensorType(every.shape, dtype)).op, IntegerPrelu if computed else IntegerTable)
    centred = every.astype(float) - source.zero_points[0]
    reals = np.where(centred >= 0, centred, centred * slopes[:, None]) * (source.scales[0] / target.scales[0])
    error = np.abs(op.compute(every) - np.clip(reals + 7, info.min, info.max))
    assert error.max() <= 0.5 + (2**-14 if computed else 2**-6)


def test_power_of_two_rounding_refuses_other_scales() -> None:
    q = QParams(0.3, 0, "uint8")
    op = QnnAdd(qin=(q, q), qout=(QParams(0.5, 0, "uint8"),), rounding="pow2_half_up")
    with pytest.raises(Exception, match="power of two"):
        op.compute(CODES, CODES)


@pytest.mark.parametrize("function", ["sigmoid", "tanh", "exp", "nn.hard_swish", "nn.gelu", "nn.silu", "erf"])
def test_tables_hold_the_quantized_function_at_every_code(function: str) -> None:
    source, target = QParams(0.05, 100, "uint8"), QParams(1 / 128, 0, "int8")
    op = QnnUnary(function=function, qin=(source,), qout=(target,))
    result = op.compute(CODES)
    for code in CODES:
        real = QnnUnary(function=function, qin=(source,), qout=(target,))._values(dequantize(code, source).reshape(1))
        assert result[code] == quantize(real, target)[0]
    direct = {"sigmoid": lambda x: 1 / (1 + math.exp(-x)), "tanh": math.tanh, "exp": math.exp, "erf": math.erf}
    if function in direct:
        reals = np.asarray([direct[function]((int(code) - 100) * source.scales[0]) for code in CODES])
        steps = np.clip(reals / target.scales[0], -128, 127)
        assert np.abs(result - steps).max() <= 0.5 + 1e-3


def test_prelu_has_one_table_for_each_channel() -> None:
    source, target = QParams(0.5, 128, "uint8"), QParams(0.5, 128, "uint8")
    op = QnnUnary(function="nn.prelu", slopes=(0.25, -1.0), axis=1, qin=(source,), qout=(target,))
    x = np.asarray([[[100, 128, 200], [100, 128, 200]]], np.uint8)
    np.testing.assert_array_equal(op.compute(x), [[[121, 128, 200], [156, 128, 200]]])


def test_tables_of_16_bits_have_an_entry_for_each_code() -> None:
    source, target = QParams(1e-3, 0, "int16"), QParams(1 / 32768, 0, "int16")
    x = np.asarray([-32768, -1, 0, 1, 32767], np.int16)
    result = QnnUnary(function="tanh", qin=(source,), qout=(target,)).compute(x)
    expected = np.rint(np.tanh(x.astype(np.float32) * np.float32(1e-3)) * 32768).clip(-32768, 32767)
    np.testing.assert_array_equal(result, expected)


def test_a_table_of_the_wrong_size_is_refused() -> None:
    from qbench.ir.types import TensorType

    with pytest.raises(GraphError, match="256"):
        IntegerTable().infer(TensorType((1, 4), "uint8"), TensorType((16,), "uint8"))


@given(
    hnp.arrays(np.uint8, hnp.array_shapes(min_dims=4, max_dims=4, min_side=3, max_side=6)),
    st.integers(0, 255),
    st.tuples(*[st.integers(0, 1)] * 4),
    st.integers(1, 3),
    st.booleans(),
)
def test_averages_have_one_denominator(
    x: np.ndarray, zero_point: int, padding: tuple[int, int, int, int], stride: int, count_include_pad: bool
) -> None:
    window = {"pool_size": (2, 3), "strides": (stride, 1), "padding": padding, "count_include_pad": count_include_pad}
    op = IntegerSumPool2d(**window, data_zero_point=zero_point, denominator=12)
    exact = AvgPool2d(**window).compute(x.astype(np.float64) - zero_point)
    np.testing.assert_allclose(op.compute(x) / 12, exact, atol=1e-9)


@given(hnp.arrays(np.uint8, (1, 2, 5, 4)), zero_points)
def test_bilinear_resizing_rounds_ties_to_even_from_the_zero_point(x: np.ndarray, zero_point: int) -> None:
    """Doubling makes multiples of 1/16, which float64 holds exactly: what onnxruntime rounds."""
    q = QParams(1.0, zero_point, "uint8")
    result = QnnResizeLinear(size=(10, 8), ties_to_even=True, qin=(q,), qout=(q,)).compute(x)
    real = Resize2d(size=(10, 8), method="linear").compute(x.astype(np.float64) - zero_point)
    np.testing.assert_array_equal(result, np.rint(real) + zero_point)


@given(hnp.arrays(np.int8, (1, 2, 5, 4)), st.integers(-128, 127))
def test_bilinear_resizing_toward_zero_cuts_the_stored_integers(x: np.ndarray, zero_point: int) -> None:
    q = QParams(1.0, zero_point, "int8")
    result = QnnResizeLinear(size=(10, 8), toward_zero=True, qin=(q,), qout=(q,)).compute(x)
    np.testing.assert_array_equal(result, np.trunc(Resize2d(size=(10, 8), method="linear").compute(x.astype(float))))


@given(hnp.arrays(np.uint8, (1, 2, 5, 4)), st.sampled_from(["half_pixel", "align_corners", "asymmetric"]), zero_points)
def test_bilinear_resizing_is_within_a_step_of_the_real_one(x: np.ndarray, mode: str, zero_point: int) -> None:
    q = QParams(1.0, zero_point, "uint8")
    result = QnnResizeLinear(size=(7, 9), coordinate_transformation_mode=mode, qin=(q,), qout=(q,)).compute(x)
    real = Resize2d(size=(7, 9), method="linear", coordinate_transformation_mode=mode).compute(x.astype(np.float64))
    assert np.abs(result - real).max() <= 0.5 + 255 * 2 * 2**-20


@given(hnp.arrays(np.int8, (2, 3, 5)), hnp.arrays(np.uint8, (2, 4, 5)), st.integers(-128, 127), zero_points)
def test_batch_matmul(lhs: np.ndarray, rhs: np.ndarray, zl: int, zr: int) -> None:
    op = IntegerBatchMatmul(transpose_rhs=True, lhs_zero_point=zl, rhs_zero_point=zr)
    expected = np.matmul(lhs.astype(np.int64) - zl, (rhs.astype(np.int64) - zr).swapaxes(1, 2))
    np.testing.assert_array_equal(op.compute(lhs, rhs), expected)


@given(hnp.arrays(np.int16, (3, 300)), hnp.arrays(np.int8, (4, 300)))
def test_sums_beyond_24_bits_stay_exact(data: np.ndarray, weight: np.ndarray) -> None:
    op = IntegerDense(accumulator="int64")
    np.testing.assert_array_equal(op.compute(data, weight), data.astype(np.int64) @ weight.astype(np.int64).T)


def test_nothing_wraps_around() -> None:
    with pytest.raises(GraphError, match="does not fit in int32"):
        to_accumulator(np.asarray([2.0**31]), "int32")
    with pytest.raises(GraphError, match="2\\^53"):
        exact_dtype(np.asarray([2**40]), 2**20)
