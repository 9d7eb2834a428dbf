"""Functions of one element and of two."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

from qbench.errors import GraphError
from tests.ops.oracle import draw, infer, one, onnx_run

WIDE = np.concatenate([np.linspace(-30, 30, 121), [0, -0.0, 1e-6, -1e-6, 88, -88, 1e4, -1e4, 3e38, -3e38]])
WIDE = WIDE.astype(np.float32)

UNARY = {
    "exp": ("Exp", {}, {}),
    "log": ("Log", {}, {}),
    "sqrt": ("Sqrt", {}, {}),
    "tanh": ("Tanh", {}, {}),
    "sin": ("Sin", {}, {}),
    "cos": ("Cos", {}, {}),
    "acos": ("Acos", {}, {}),
    "acosh": ("Acosh", {}, {}),
    "asin": ("Asin", {}, {}),
    "asinh": ("Asinh", {}, {}),
    "atan": ("Atan", {}, {}),
    "atanh": ("Atanh", {}, {}),
    "cosh": ("Cosh", {}, {}),
    "sinh": ("Sinh", {}, {}),
    "tan": ("Tan", {}, {}),
    "erf": ("Erf", {}, {}),
    "abs": ("Abs", {}, {}),
    "negative": ("Neg", {}, {}),
    "floor": ("Floor", {}, {}),
    "ceil": ("Ceil", {}, {}),
    "round": ("Round", {}, {}),
    "reciprocal": ("Reciprocal", {}, {}),
    "sign": ("Sign", {}, {}),
    "sigmoid": ("Sigmoid", {}, {}),
    "nn.relu": ("Relu", {}, {}),
    "nn.leaky_relu": ("LeakyRelu", {"alpha": 0.3}, {"alpha": 0.3}),
    "nn.hard_sigmoid": ("HardSigmoid", {"alpha": 0.1, "beta": 0.6}, {"alpha": 0.1, "beta": 0.6}),
    "nn.hard_swish": ("HardSwish", {}, {}),
    "nn.elu": ("Elu", {"alpha": 1.5}, {"alpha": 1.5}),
    "nn.softplus": ("Softplus", {}, {}),
}


@pytest.mark.parametrize("op", UNARY)
def test_unary(op: str) -> None:
    onnx, ours, theirs = UNARY[op]
    expected = (
        onnx_run(onnx, WIDE, opset=18, reference=op == "sqrt", **theirs)
        if op != "sqrt"
        else np.sqrt(WIDE.astype(np.float64), where=WIDE >= 0, out=np.full(WIDE.shape, np.nan))
    )
    tolerance = {"rtol": 1e-4, "atol": 1e-6}
    np.testing.assert_allclose(one(op, WIDE, **ours), expected, **tolerance)


def test_is_nan() -> None:
    x = np.asarray([[-np.inf, -1, 0], [np.nan, np.inf, 3]], np.float32)
    np.testing.assert_array_equal(one("is_nan", x), onnx_run("IsNaN", x))
    with pytest.raises(GraphError, match="float operands"):
        infer("is_nan", (2,), dtype="int32")


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate: str) -> None:
    x = np.linspace(-9, 9, 181, dtype=np.float32)
    expected = onnx_run("Gelu", x, opset=20, approximate=approximate)
    np.testing.assert_allclose(one("nn.gelu", x, approximate=approximate), expected, atol=2e-6)


def test_silu() -> None:
    x = np.linspace(-90, 90, 181, dtype=np.float32)
    expected = x / (1 + np.exp(-x.astype(np.float64)))
    np.testing.assert_allclose(one("nn.silu", x), expected, rtol=1e-6)


def test_prelu() -> None:
    data, alpha = draw((2, 3, 4, 5)), draw((3,), 1)
    expected = onnx_run("PRelu", data, alpha[:, np.newaxis, np.newaxis])
    np.testing.assert_array_equal(one("nn.prelu", data, alpha), expected)
    np.testing.assert_array_equal(one("nn.prelu", data, alpha[:, np.newaxis, np.newaxis]), expected)
    with pytest.raises(GraphError, match="is no number by axis"):
        infer("nn.prelu", (2, 3, 4), (3, 4))
    with pytest.raises(GraphError, match="length of alpha is 2, but must be 3"):
        infer("nn.prelu", (2, 3, 4), (2,))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint8", "int32", "int64"])
def test_clip(dtype: str) -> None:
    data = np.arange(0 if dtype == "uint8" else -100, 100).astype(dtype)
    result = one("clip", data, a_min=-3.0, a_max=6.0)
    np.testing.assert_array_equal(result, np.minimum(np.maximum(data.astype(float), -3), 6))
    np.testing.assert_array_equal(one("clip", data, a_min=-np.inf, a_max=np.inf), data)
    if dtype == "uint8":
        np.testing.assert_array_equal(one("clip", data, a_min=-9.0, a_max=-3.0), 0)
    with pytest.raises(GraphError, match="must not exceed"):
        infer("clip", ("N",), a_min=1.0, a_max=0.0)


BINARY = {
    "add": "Add",
    "subtract": "Sub",
    "multiply": "Mul",
    "divide": "Div",
    "power": "Pow",
    "maximum": "Max",
    "minimum": "Min",
    "equal": "Equal",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
}


def test_the_square_of_a_difference_and_the_inverse_of_a_root() -> None:
    lhs, rhs = draw((3, 4)), draw((4,), 1)
    np.testing.assert_allclose(one("squared_difference", lhs, rhs), (lhs - rhs) ** 2, rtol=1e-6)
    np.testing.assert_allclose(one("rsqrt", lhs * lhs), 1 / np.abs(lhs), rtol=1e-5)


@pytest.mark.parametrize("op", BINARY)
@given(mutually_broadcastable_shapes(num_shapes=2, max_dims=4, max_side=4), st.sampled_from(["float32", "int64"]))
@settings(max_examples=20, deadline=None)
def test_binary(op: str, shapes: object, dtype: str) -> None:
    left, right = shapes.input_shapes
    lhs, rhs = (draw(left) * 5).astype(dtype), (draw(right, 1) * 5).astype(dtype)
    if op in ("power", "divide"):
        lhs, rhs = (abs(lhs) if op == "power" else lhs), abs(rhs) + 1
    np.testing.assert_allclose(one(op, lhs, rhs), onnx_run(BINARY[op], lhs, rhs), rtol=1e-5)


def test_integer_division_is_cut_towards_zero() -> None:
    lhs, rhs = np.array([7, -7, 7, -7, 6, -6, 0]), np.array([2, 2, -2, -2, 3, 3, 5])
    np.testing.assert_array_equal(one("divide", lhs, rhs), [3, -3, -3, 3, 2, -2, 0])


def test_overflow_is_infinity_and_no_warning() -> None:
    big = np.full(2, 3e38, np.float32)
    assert np.isinf(one("multiply", big, big)).all()
    assert np.isnan(one("divide", big * 0, big * 0)).all()
    assert np.isinf(one("exp", big)).all()


@given(mutually_broadcastable_shapes(num_shapes=3, max_dims=4, max_side=4))
@settings(max_examples=30, deadline=None)
def test_where_and_logic(shapes: object) -> None:
    condition, lhs, rhs = (draw(shape, i) for i, shape in enumerate(shapes.input_shapes))
    np.testing.assert_array_equal(one("where", condition > 0, lhs, rhs), np.where(condition > 0, lhs, rhs))
    np.testing.assert_array_equal(one("logical_and", lhs > 0, rhs > 0), (lhs > 0) & (rhs > 0))
    np.testing.assert_array_equal(one("logical_or", lhs > 0, rhs > 0), (lhs > 0) | (rhs > 0))
    np.testing.assert_array_equal(one("logical_not", lhs > 0), lhs <= 0)


def test_broadcast_of_symbols() -> None:
    assert infer("add", ("N", 3), ("N", 3))[0].shape == ("N", 3)
    assert infer("add", ("N", 1, 3), (4, 1))[0].shape == ("N", 4, 3)
    with pytest.raises(GraphError, match=r"add: shapes \('N', 3\), \(2, 3\) do not broadcast"):
        infer("add", ("N", 3), (2, 3))
    with pytest.raises(GraphError, match="wants numbers, not bool"):
        infer("add", (3,), (3,), dtype="bool")
    with pytest.raises(GraphError, match="logical_and wants bool, not float32, float32"):
        infer("logical_and", (3,), (3,))
