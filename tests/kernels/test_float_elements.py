"""Elementwise float kernels against the NumPy ops, with the broadcasts and strides that images have."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import qbench.ops  # noqa: F401
from qbench.ir.op import OPS, QuantRule
from qbench.kernels.floats.binary import OPERATORS, binary_kernel
from qbench.kernels.floats.convert import convert_kernel
from qbench.kernels.floats.functions import FUNCTIONS
from qbench.kernels.floats.unary import unary_kernel
from qbench.kernels.levels import Level
from qbench.kernels.walk import row_major, strided
from tests.kernels.harness import launch

LEVELS = [Level.PORTABLE, Level.AVX2]
BOUNDS = {"low": -np.inf, "high": np.inf}
SHAPES = st.lists(st.integers(0, 9), min_size=1, max_size=4).map(tuple)


def steps(array):
    return tuple(step // array.itemsize for step in array.strides)


NAMED = {name.rpartition(".")[2]: op for name, op in OPS.items() if op.rule is not QuantRule.INTERNAL}


def close(y, expected):
    ulp = 1e-5 if y.dtype == np.float32 else 2**-10
    assert y.dtype == expected.dtype
    np.testing.assert_allclose(y.astype(np.float64), expected.astype(np.float64), rtol=ulp, atol=2e-6)


def unary(function, x, threads=1, level=Level.PORTABLE, alpha=0, beta=0):
    y = np.zeros(x.shape, x.dtype)
    fields = strided(x.shape, x=row_major(x.shape), y=row_major(x.shape))
    launch(unary_kernel(function, x.dtype.name, level), threads, x=x, y=y, alpha=alpha, beta=beta, **fields)
    return y


def reference(function, x, alpha, beta):
    op, approximate = ("gelu", "tanh") if function == "gelu_tanh" else (function, "")
    attrs = {
        "leaky_relu": {"alpha": alpha},
        "elu": {"alpha": alpha},
        "hard_sigmoid": {"alpha": alpha, "beta": beta},
    }
    if op == "clamp":
        return np.clip(x, x.dtype.type(alpha), x.dtype.type(beta))
    given = {"approximate": approximate} if approximate else attrs.get(op, {})
    return NAMED[op](**given).compute_all((x,))[0]


@pytest.mark.parametrize("function, dtype", [*((name, "float32") for name in FUNCTIONS), ("silu", "float16")])
def test_a_function_of_each_element(function, dtype):
    x = np.concatenate([np.linspace(-12, 12, 301), [-0.0, 1e-4, -1e-4]]).astype(dtype)
    if function in ("sqrt", "log", "reciprocal", "rsqrt"):
        x = np.abs(x[x != 0])
    elif function in ("asin", "acos", "atanh"):
        x = x / 13
    elif function == "acosh":
        x = 1 + np.abs(x)
    y = unary(function, x, alpha=0.25, beta=0.75)
    close(y, reference(function, x, 0.25, 0.75))
    assert np.array_equal(y, unary(function, x, threads=3, alpha=0.25, beta=0.75))


def test_the_exponential_reaches_the_ends_of_its_range():
    x = np.array([-200, -104, -103, -90, 88.7], np.float32)
    np.testing.assert_allclose(unary("exp", x), np.exp(x.astype(np.float64)), rtol=1e-5, atol=2e-45)


@pytest.mark.parametrize(
    ("function", "x"),
    [
        ("log", [1e-45, 1e-40, 2.0**-126, 0.999, 1.001, 3e38]),
        ("sin", [-1e6, -1000.25, 1e-30, 3.1415927, 6.2831855, 12345.678, 1e8]),
        ("cos", [-1e6, -1000.25, 1e-30, 1.5707964, 4.712389, 12345.678, 1e8]),
        ("atan", [-1e30, -2.5, -0.4, 1e-30, 0.41, 0.42, 2.41, 2.42, 1e6]),
        ("softplus", [-80, -20, -1e-3, 1e-3, 20, 1e6]),
    ],
)
def test_functions_far_from_one(function, x):
    x = np.array(x, np.float32)
    exact = NAMED[function]().compute_all((x.astype(np.float64),))[0]
    np.testing.assert_allclose(unary(function, x), exact, rtol=4e-7, atol=1e-8 if function in ("sin", "cos") else 0)


@np.errstate(all="ignore")
def test_what_has_no_logarithm_or_sine():
    ends = np.array([-np.inf, -1, 0, np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(unary("log", ends), [np.nan, np.nan, -np.inf, np.inf, np.nan])
    np.testing.assert_array_equal(np.isnan(unary("sin", ends)), [True, False, False, True, True])
    np.testing.assert_array_equal(unary("atan", ends)[[0, 2, 3]], np.float32([-np.pi / 2, 0, np.pi / 2]))
    assert np.abs(unary("cos", np.float32([1e30, -3e38]))).max() <= 1


def test_the_hyperbolic_tangent_reaches_one():
    assert unary("tanh", np.array([-np.inf, -9, 9, np.inf], np.float32)).tolist() == [-1, -1, 1, 1]


@pytest.mark.parametrize("operator, dtype", [*((name, "float32") for name in OPERATORS), ("add", "float16")])
@settings(max_examples=20)
@given(shape=SHAPES, data=st.data())
def test_a_function_of_two_elements_broadcast(operator, dtype, shape, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    small = tuple(1 if data.draw(st.booleans()) else size for size in shape)
    a, b = (rng.uniform(0.5, 3, s).astype(dtype) for s in (shape, small))
    if data.draw(st.booleans()) and operator != "prelu":
        a, b = b, a
    y = np.zeros(shape, dtype)
    fields = strided(shape, a=steps(np.broadcast_to(a, shape)), b=steps(np.broadcast_to(b, shape)), y=row_major(shape))
    kernel = binary_kernel(operator, dtype, data.draw(st.sampled_from(LEVELS)))
    launch(kernel, data.draw(st.integers(1, 3)), a=a, b=b, y=y, **BOUNDS, **fields)
    powers = {"square": 2, "cube": 3}
    op = NAMED["power" if operator in powers else operator]()
    b = np.broadcast_to(b.dtype.type(powers.get(operator, 0)), b.shape) if operator in powers else b
    close(y, np.where(a > 0, a, a * b) if operator == "prelu" else op.compute_all((a, b))[0])


def test_the_sum_is_clamped_and_what_lies_beside_the_result_is_left_alone():
    rng = np.random.default_rng(0)
    a, b, y = (rng.normal(size=(2, 5, 7, 6)).astype(np.float32) for _ in range(3))
    before, part = y.copy(), y[:, 1:4, 2:, 1:4]
    fields = strided(part.shape, a=steps(part), b=steps(part), y=steps(part))
    a_part, b_part = a[:, 1:4, 2:, 1:4], b[:, 1:4, 2:, 1:4]
    launch(binary_kernel("add", "float32", Level.PORTABLE), 2, a=a_part, b=b_part, y=part, low=0, high=1, **fields)
    before[:, 1:4, 2:, 1:4] = np.clip(a_part + b_part, 0, 1)
    assert np.array_equal(y, before)


@given(shape=SHAPES, inner=st.permutations(range(4)))
def test_any_order_of_axes_is_walked(shape, inner):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    x = x.transpose([axis for axis in inner if axis < x.ndim])
    y = np.zeros(x.shape, np.float32)
    kernel = unary_kernel("negative", "float32", Level.PORTABLE)
    try:
        fields = strided(x.shape, x=steps(x), y=row_major(x.shape))
    except ValueError:
        return
    launch(kernel, 2, x=x, y=y, alpha=0, beta=0, **fields)
    assert np.array_equal(y, -x)


@pytest.mark.parametrize("level", LEVELS)
def test_every_half_float_is_widened_exactly(level):
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    y = np.zeros(x.shape, np.float32)
    fields = strided(x.shape, x=(1,), y=(1,))
    launch(convert_kernel("float16", "float32", level), 2, x=x, y=y, **fields)
    np.testing.assert_array_equal(y, x.astype(np.float32))


@pytest.mark.parametrize("level", LEVELS)
def test_floats_are_rounded_to_the_nearest_half_float_and_to_even(level):
    near = np.arange(1 << 15, dtype=np.uint16).view(np.float16).astype(np.float32)
    bits = near[np.isfinite(near)].view(np.int32)[:, np.newaxis]
    off = np.array([-1, 0, 1, 0xFFF, 0x1000, 0x1001])
    x = np.maximum(bits + off, 0).astype(np.int32).view(np.float32).ravel()
    x = np.concatenate([x, -x, [65519.9, 65520, 7e4, np.inf, -np.inf, np.nan, 1e-8, 2.0**-25]]).astype(np.float32)
    y = np.zeros(x.shape, np.float16)
    launch(convert_kernel("float32", "float16", level), 2, x=x, y=y, **strided(x.shape, x=(1,), y=(1,)))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(y, x.astype(np.float16))
