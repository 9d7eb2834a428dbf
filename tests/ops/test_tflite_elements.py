"""TFLite's elementwise ops: every integer of a type, and random scales, against LiteRT's reference kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from qbench.forms.sums import product_qparams
from qbench.ir.qparams import QParams
from qbench.quant.arithmetic import dequantize, quantize
from tests.ops.one_op import SEED, WIDTH, every, few, ours, qparams, reference, requantized, some

SHAPES = st.sampled_from([(3, 5, 7), (1, 7), (5, 1), (3, 1, 7), (1,)])
CURVES: dict[str, tuple[str, dict[str, Any], str]] = {
    "TANH": ("tanh", {}, "int8 uint8"),
    "LEAKY_RELU": ("nn.leaky_relu", {"alpha": 0.2}, "int8 uint8 int16"),
    "RELU": ("nn.relu", {}, "int8 uint8 int16"),
    "RELU6": ("clip", {"a_min": 0.0, "a_max": 6.0}, "int8 uint8 int16"),
    "RELU_N1_TO_1": ("clip", {"a_min": -1.0, "a_max": 1.0}, "int8 uint8"),
    "HARD_SWISH": ("nn.hard_swish", {}, "int8 uint8"),
    "EXP": ("exp", {}, "int8 int16"),
    "LOG": ("log", {}, "int8 int16"),
    "ABS": ("abs", {}, "int8 int16"),
    "LOGISTIC": ("sigmoid", {}, ""),
    "RSQRT": ("rsqrt", {}, ""),
    "SQRT": ("sqrt", {}, ""),
}
WIDTHS = [(op, dtype) for op, (_, _, dtypes) in CURVES.items() for dtype in dtypes.split()]


def check(op: str, q: QParams, out: QParams, **options: Any) -> None:
    function, parameters, _ = CURVES[op]
    x = every(q.dtype)
    found = ours(
        "qnn.unary", [x], [q], out, function=function, parameters=tuple(parameters.items()), semantics="tflite"
    )
    np.testing.assert_array_equal(found, reference(op, [(x, q)], out, shape=x.shape, **options), strict=True)


@pytest.mark.parametrize(("op", "dtype"), WIDTHS)
@few
@given(data=st.data())
def test_functions_at_every_integer(op: str, dtype: str, data: st.DataObject) -> None:
    q, out = data.draw(qparams(dtype)), data.draw(qparams(dtype))
    assume(q.scales[0] / out.scales[0] < 2**14)  # beyond, a left shift in LiteRT may wrap around
    if op == "HARD_SWISH":
        assume(out.scale > q.scale / 120)
    check(op, q, out, **({"alpha": 0.2} if op == "LEAKY_RELU" else {}))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@few
@given(data=st.data())
def test_sigmoid(dtype: str, data: st.DataObject) -> None:
    check("LOGISTIC", data.draw(qparams(dtype)), QParams(1 / 256, np.iinfo(dtype).min, dtype))


@pytest.mark.parametrize("op", ["LOGISTIC", "TANH"])
@few
@given(scale=st.one_of(st.sampled_from([2.0**-11, 2.0**-12, 2.0**-13]), st.floats(2.0**-16, 0.5, width=32)))
def test_curves_of_16_bits(op: str, scale: float) -> None:
    check(op, QParams(scale, 0, "int16"), QParams(2.0**-15, 0, "int16"))


@few
@given(q=qparams("int8"), out=qparams("int8"))
def test_reciprocal_square_root(q: QParams, out: QParams) -> None:
    check("RSQRT", QParams(q.scale, -128, "int8"), out)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@few
@given(data=st.data())
def test_square_root(dtype: str, data: st.DataObject) -> None:
    """LiteRT's kernel fails where a number is negative."""
    q, out = data.draw(qparams(dtype)), data.draw(qparams(dtype))
    q = QParams(q.scale, -128, dtype) if dtype == "int8" else q
    x = np.maximum(every(dtype), np.asarray(q.zero_points[0], dtype))
    found = ours("qnn.unary", [x], [q], out, function="sqrt", semantics="tflite")
    np.testing.assert_array_equal(found, reference("SQRT", [(x, q)], out, shape=x.shape), strict=True)


@few
@given(q=qparams("int8"), out=qparams("int8"))
def test_elu_which_has_no_reference_kernel(q: QParams, out: QParams) -> None:
    x = every("int8")
    found = ours("qnn.unary", [x], [q], out, function="nn.elu", semantics="tflite")
    wanted = reference("ELU", [(x, q)], out, shape=x.shape, resolver="BUILTIN_WITHOUT_DEFAULT_DELEGATES")
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("approximate", [False, True])
@few
@given(q=qparams("int8"), out=qparams("int8"))
def test_gelu(approximate: bool, q: QParams, out: QParams) -> None:
    x, parameters = every("int8"), (("approximate", "tanh"),) if approximate else ()
    found = ours("qnn.unary", [x], [q], out, function="nn.gelu", parameters=parameters, semantics="tflite")
    wanted = reference("GELU", [(x, q)], out, shape=x.shape, approximate=approximate)
    np.testing.assert_array_equal(found, wanted)


@few
@given(seed=SEED, shape=SHAPES, data=st.data())
def test_squared_differences(seed: int, shape: tuple[int, ...], data: st.DataObject) -> None:
    lhs, rhs, out = (data.draw(qparams("int8")) for _ in range(3))
    assume(4 * max(lhs.scales[0], rhs.scales[0]) ** 2 < 2**14 * out.scales[0])
    x, y = some(seed, "int8", (3, 5, 7)), some(seed + 1, "int8", shape)
    found = ours("qnn.binary", [x, y], [lhs, rhs], out, function="squared_difference", semantics="tflite")
    wanted = reference("SQUARED_DIFFERENCE", [(x, lhs), (y, rhs)], out, shape=(3, 5, 7))
    np.testing.assert_array_equal(found, wanted, strict=True)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@few
@given(data=st.data())
def test_opposites(dtype: str, data: st.DataObject) -> None:
    q, x = replace(data.draw(qparams(dtype)), zero_point=0), every(dtype)
    found = ours("qnn.unary", [x], [q], q, function="negative", semantics="tflite")
    np.testing.assert_array_equal(found, reference("NEG", [(x, q)], q, shape=x.shape))
    other = QParams(q.scales[0] * 1.7, 0 if dtype == "int16" else 3, dtype)
    found = ours("qnn.unary", [x], [q], other, function="negative", semantics="tflite").astype(np.int64)
    assert np.abs(found - quantize(-dequantize(x, q), other)).max() <= 1


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("op", ["EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL"])
@few
@given(seed=SEED, shape=SHAPES, data=st.data())
def test_comparisons(op: str, dtype: str, seed: int, shape: tuple[int, ...], data: st.DataObject) -> None:
    """Of a fine scale, neighbours are equal there."""
    fine = st.floats(2.0**-11, 2.0**-5, width=32)
    lhs, rhs = (data.draw(qparams(dtype, fine)) for _ in range(2))
    x, y = some(seed, dtype, (3, 5, 7)), some(seed + 1, dtype, shape)
    found = ours("qnn.compare", [x, y], [lhs, rhs], None, function=op.lower(), semantics="tflite")
    wanted = reference(op, [(x, lhs), (y, rhs)], None, shape=(3, 5, 7), dtype="bool")
    np.testing.assert_array_equal(found, wanted, strict=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@few
@given(seed=SEED, shape=SHAPES, data=st.data())
def test_quotients(dtype: str, seed: int, shape: tuple[int, ...], data: st.DataObject) -> None:
    lhs, rhs, out = (data.draw(qparams(dtype)) for _ in range(3))
    assume(lhs.scales[0] / (rhs.scales[0] * out.scales[0]) < 2**10)
    x, y = some(seed, dtype, (3, 5, 7)), some(seed + 1, dtype, shape)
    y = np.where(y == rhs.zero_points[0], y + 1 if rhs.zero_points[0] < 9 else y - 1, y).astype(dtype)
    found = ours("qnn.binary", [x, y], [lhs, rhs], out, function="divide", semantics="tflite")
    wanted = reference("DIV", [(x, lhs), (y, rhs)], out, shape=(3, 5, 7))
    np.testing.assert_array_equal(found, wanted)


def test_functions_that_tflite_lacks_are_tables_of_their_own_meaning() -> None:
    q, x = QParams(0.1, 0, "int8"), every("int8")
    tables = [ours("qnn.unary", [x], [q], q, function="sin", semantics=whose) for whose in ("tflite", "tvm")]
    np.testing.assert_array_equal(*tables)


@pytest.mark.parametrize(("op", "name"), [("ADD", "qnn.add"), ("SUB", "qnn.subtract")])
@few
@given(dtype=WIDTH, seed=SEED, shape=SHAPES, data=st.data())
def test_sums(op: str, name: str, dtype: str, seed: int, shape: tuple[int, ...], data: st.DataObject) -> None:
    lhs, rhs, out = (data.draw(qparams(dtype)) for _ in range(3))
    assume(2 * max(lhs.scales[0], rhs.scales[0]) < (2**15 if dtype == "int16" else 2**20) * out.scales[0])
    x, y = some(seed, dtype, (3, 5, 7)), some(seed + 1, dtype, shape)
    found = ours(name, [x, y], [lhs, rhs], out, rounding="tflite_double", semantics="tflite")
    wanted = reference(op, [(x, lhs), (y, rhs)], out, shape=(3, 5, 7), pot_scale_int16=False)
    np.testing.assert_array_equal(found, wanted, strict=True)


@few
@given(dtype=WIDTH, seed=SEED, shape=SHAPES, data=st.data())
def test_products(dtype: str, seed: int, shape: tuple[int, ...], data: st.DataObject) -> None:
    scale = st.floats(2.0**-16, 2.0**-10, width=32) if dtype == "int16" else None
    lhs, rhs, out = (data.draw(qparams(dtype, scale)) for _ in range(3))
    assume(lhs.scales[0] * rhs.scales[0] / out.scales[0] < 2.0 ** (0 if dtype == "int16" else 12))
    x, y = some(seed, dtype, (3, 5, 7)), some(seed + 1, dtype, shape)
    sums = ours("qnn.multiply", [x, y], [lhs, rhs], None)
    real = product_qparams("tflite", "qnn.multiply", lhs, rhs, None, out).scales[0]
    wanted = reference("MUL", [(x, lhs), (y, rhs)], out, shape=(3, 5, 7))
    np.testing.assert_array_equal(requantized(sums, real, out, "tflite_double"), wanted, strict=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@few
@given(seed=SEED, shape=st.sampled_from([(1, 1, 5), (1,), (3, 4, 5), (3, 1, 5)]), data=st.data())
def test_prelu(dtype: str, seed: int, shape: tuple[int, ...], data: st.DataObject) -> None:
    q, slope, out = (data.draw(qparams(dtype)) for _ in range(3))
    assume(q.scales[0] * slope.scales[0] / out.scales[0] < 2**12)
    x, a = some(seed, dtype, (2, 3, 4, 5)), some(seed + 1, dtype, shape)
    found = ours("qnn.prelu", [x, a], [q, slope], out, semantics="tflite")
    wanted = reference("PRELU", [(x, q)], out, [(a, slope)], shape=x.shape)
    np.testing.assert_array_equal(found, wanted, strict=True)


@pytest.mark.parametrize("op", ["MAXIMUM", "MINIMUM"])
@few
@given(dtype=WIDTH, seed=SEED, shape=SHAPES, data=st.data())
def test_extremes(op: str, dtype: str, seed: int, shape: tuple[int, ...], data: st.DataObject) -> None:
    q = data.draw(qparams(dtype))
    x, y = some(seed, dtype, (3, 5, 7)), some(seed + 1, dtype, shape)
    wanted = reference(op, [(x, q), (y, q)], q, shape=(3, 5, 7))
    np.testing.assert_array_equal(ours(op.lower(), [x, y], [q, q], q), wanted, strict=True)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@few
@given(data=st.data(), seed=SEED)
def test_quantize_rounds_ties_away(dtype: str, data: st.DataObject, seed: int) -> None:
    q, rng = data.draw(qparams(dtype)), np.random.default_rng(seed)
    ties = (rng.integers(-300, 300, 200) + 0.5) * q.scales[0]
    x = np.concatenate([ties, rng.normal(0, 100 * q.scales[0], 200), [1e8 * q.scales[0], -1e8 * q.scales[0]]])
    x = x.astype(np.float32)
    found = ours("qnn.quantize", [x], [None], q, ties="away")
    np.testing.assert_array_equal(found, reference("QUANTIZE", [(x, None)], q, shape=x.shape), strict=True)


@few
@given(source=WIDTH, target=WIDTH, data=st.data())
def test_requantize(source: str, target: str, data: st.DataObject) -> None:
    assume((source, target) != ("uint8", "int16") and (source, target) != ("int16", "uint8"))
    q, out = data.draw(qparams(source)), data.draw(qparams(target))
    assume(q.scales[0] / out.scales[0] < 2**14)
    x = every(source)
    found = ours("qnn.requantize", [x], [q], out, rounding="tflite_double")
    np.testing.assert_array_equal(found, reference("QUANTIZE", [(x, q)], out, shape=x.shape), strict=True)


@few
@given(dtype=WIDTH, data=st.data())
def test_dequantize(dtype: str, data: st.DataObject) -> None:
    q, x = data.draw(qparams(dtype)), every(dtype)
    wanted = reference("DEQUANTIZE", [(x, q)], None, shape=x.shape)
    np.testing.assert_array_equal(ours("qnn.dequantize", [x], [q], None), wanted, strict=True)


@few
@given(qs=st.lists(qparams("uint8"), min_size=1, max_size=4), out=qparams("uint8"), axis=st.integers(0, 2))
def test_concatenation_of_different_scales(qs: list[QParams], out: QParams, axis: int) -> None:
    qs = [*qs, out]
    x = every("uint8").reshape(4, 8, 8)
    found = ours("qnn.concatenate", [x] * len(qs), qs, out, axis=axis, semantics="tflite")
    wanted = reference("CONCATENATION", [(x, q) for q in qs], out, shape=found.shape, axis=axis)
    np.testing.assert_array_equal(found, wanted, strict=True)
