from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qbench.errors import GraphError
from qbench.ops.numeric.windows import Window, pool_counts, pool_max, pool_sum
from tests.ops.oracle import draw, infer, one, onnx_run


@st.composite
def pools(draw_: st.DrawFn) -> tuple[tuple[int, ...], dict]:
    size = draw_(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    dilation = draw_(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilation, strict=True)]
    padding = tuple(draw_(st.integers(0, min(size[i % 2] - 1, 2))) for i in range(4))
    strides, ceil_mode = draw_(st.tuples(st.integers(1, 4), st.integers(1, 4))), draw_(st.booleans())
    missing = [min(r, s) - 1 if ceil_mode else 0 for r, s in zip(reach, strides, strict=True)]  # of a window that fits
    shape = (2, 3, *(r - less + draw_(st.integers(0, 7)) for r, less in zip(reach, missing, strict=True)))
    attrs = {"pool_size": size, "strides": strides, "padding": padding, "dilation": dilation}
    return shape, attrs | {"ceil_mode": ceil_mode}


def onnx_attrs(attrs: dict) -> dict:
    return {
        "kernel_shape": attrs["pool_size"],
        "strides": attrs["strides"],
        "pads": attrs["padding"],
        "dilations": attrs["dilation"],
        "ceil_mode": int(attrs["ceil_mode"]),
    }


@given(pools())
@settings(max_examples=150, deadline=None)
def test_max_pool(case: tuple) -> None:
    shape, attrs = case
    data = draw(shape) - 3  # below 0, where padding with zeros would win
    made = one("nn.max_pool2d", data, **attrs)
    assume(np.isfinite(made).all())  # a dilated window may see nothing but padding
    np.testing.assert_array_equal(made, onnx_run("MaxPool", data, **onnx_attrs(attrs)))
    integers = (data * 20).astype(np.int8)
    expected = onnx_run("MaxPool", integers, **onnx_attrs(attrs))
    np.testing.assert_array_equal(one("nn.max_pool2d", integers, **attrs), expected)


@given(pools(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_avg_pool(case: tuple, include: bool) -> None:
    shape, attrs = case
    data = draw(shape)
    expected = onnx_run("AveragePool", data, opset=19, count_include_pad=int(include), **onnx_attrs(attrs))
    assume(np.isfinite(expected).all())  # a dilated window may see nothing but padding
    np.testing.assert_allclose(one("nn.avg_pool2d", data, count_include_pad=include, **attrs), expected, atol=1e-5)


@given(pools(), st.booleans())
@settings(max_examples=50, deadline=None)
def test_sums_and_counts_of_integers(case: tuple, include: bool) -> None:
    shape, attrs = case
    data = np.random.default_rng(0).integers(-128, 128, shape)
    window = Window(attrs["pool_size"], attrs["strides"], attrs["padding"], attrs["dilation"], attrs["ceil_mode"])
    sums = pool_sum(data.astype(np.float64), window)
    np.testing.assert_array_equal(sums, pool_sum(data, window))
    counts = pool_counts(shape[2:], window, include)
    assert counts.shape == sums.shape[2:] == window.counts(shape[2:])
    mean = one("nn.avg_pool2d", data.astype(np.float32), count_include_pad=include, **attrs)
    np.testing.assert_allclose(sums / counts, mean, rtol=1e-5)
    dense = attrs["strides"] == attrs["dilation"] == (1, 1)  # else the windows may miss some elements
    assert pool_max(data, window).max() == data.max() or not dense


@pytest.mark.parametrize(
    "op, onnx", [("nn.global_avg_pool2d", "GlobalAveragePool"), ("nn.global_max_pool2d", "GlobalMaxPool")]
)
def test_global(op: str, onnx: str) -> None:
    data = draw((2, 5, 7, 3))
    np.testing.assert_allclose(one(op, data), onnx_run(onnx, data), atol=1e-6)
    assert infer(op, ("N", 5, "H", 3))[0].shape == ("N", 5, 1, 1)


def test_errors() -> None:
    with pytest.raises(GraphError, match=r"padding=\(2, 0, 0, 0\) must be smaller than the window, \(2, 2\)"):
        infer("nn.max_pool2d", (1, 1, 4, 4), pool_size=(2, 2), strides=(1, 1), padding=(2, 0, 0, 0))
    with pytest.raises(GraphError, match="does not fit"):
        infer("nn.avg_pool2d", ("N", 1, 4, 4), pool_size=(5, 2), strides=(1, 1))
    with pytest.raises(GraphError, match="wants float operands, not int8"):
        infer("nn.avg_pool2d", (1, 1, 4, 4), pool_size=(2, 2), strides=(1, 1), dtype="int8")
    with pytest.raises(GraphError, match="needs the attribute strides"):
        infer("nn.avg_pool2d", (1, 1, 4, 4), pool_size=(2, 2))
