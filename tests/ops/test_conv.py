from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.errors import GraphError
from qbench.ops.numeric.convolution import convolve
from tests.ops.oracle import draw, infer, one, onnx_run

PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))
PADS = st.tuples(*[st.integers(0, 2)] * 4)
KERNELS = st.tuples(st.integers(1, 4), st.integers(1, 4))


@st.composite
def convolutions(draw_: st.DrawFn) -> dict:
    """Shapes of all the kinds that have their own code: dense, pointwise, grouped, depthwise with a multiplier."""
    kind = draw_(st.sampled_from(["dense", "pointwise", "grouped", "depthwise", "one channel"]))
    groups = draw_(st.integers(2, 3)) if kind in ("grouped", "depthwise") else 1
    per_group = {"grouped": 2, "depthwise": 1, "one channel": 1}.get(kind) or draw_(st.integers(1, 4))
    window = (1, 1) if kind == "pointwise" else draw_(KERNELS)
    dilation = draw_(PAIRS)
    reach = [(k - 1) * d + 1 for k, d in zip(window, dilation, strict=True)]
    return {
        "data": (draw_(st.integers(1, 2)), groups * per_group, *(r + draw_(st.integers(0, 6)) for r in reach)),
        "weight": (groups * draw_(st.integers(1, 3)), per_group, *window),
        "attrs": {"strides": draw_(PAIRS), "padding": draw_(PADS), "dilation": dilation, "groups": groups},
    }


def onnx_attrs(attrs: dict) -> dict:
    return {
        "strides": attrs["strides"],
        "pads": attrs["padding"],
        "dilations": attrs["dilation"],
        "group": attrs["groups"],
    }


@given(convolutions())
@settings(max_examples=150, deadline=None)
def test_conv2d(case: dict) -> None:
    data, weight = draw(case["data"]), draw(case["weight"], 1)
    result = one("nn.conv2d", data, weight, **case["attrs"])
    np.testing.assert_allclose(result, onnx_run("Conv", data, weight, **onnx_attrs(case["attrs"])), atol=1e-4)


@given(convolutions())
@settings(max_examples=75, deadline=None)
def test_integers_in_float64_are_exact(case: dict) -> None:
    rng = np.random.default_rng(0)
    data, weight = rng.integers(-255, 256, case["data"]), rng.integers(-127, 128, case["weight"])
    attrs = case["attrs"]
    result = convolve(data.astype(np.float64), weight.astype(np.float64), **attrs)
    expected = onnx_run("ConvInteger", (data % 256).astype(np.uint8), weight.astype(np.int8), **onnx_attrs(attrs))
    again = convolve((data % 256).astype(np.float64), weight.astype(np.float64), **attrs)
    np.testing.assert_array_equal(again, expected)
    # linear: the two data sets differ by 256 times a 0/1 image
    carry = convolve(((data % 256 - data) // 256).astype(np.float64), weight.astype(np.float64), **attrs)
    np.testing.assert_array_equal(result + 256 * carry, again)


@given(convolutions(), st.integers(0, 2))
@settings(max_examples=150, deadline=None)
def test_conv2d_transpose(case: dict, extra: int) -> None:
    attrs, shape, window = case["attrs"], case["data"], case["weight"][2:]
    weight = draw((shape[1], case["weight"][0] // attrs["groups"], *window), 1)
    extra_pair = tuple(min(extra, stride - 1) for stride in attrs["strides"])
    reach = [(k - 1) * d + 1 for k, d in zip(window, attrs["dilation"], strict=True)]
    sizes = [
        (shape[2 + i] - 1) * attrs["strides"][i]
        + reach[i]
        - attrs["padding"][i]
        - attrs["padding"][i + 2]
        + extra_pair[i]
        for i in (0, 1)
    ]
    if min(sizes) < 1:
        with pytest.raises(GraphError, match="leaves nothing"):
            infer("nn.conv2d_transpose", shape, weight.shape, output_padding=extra_pair, **attrs)
        return
    data = draw(shape)
    result = one("nn.conv2d_transpose", data, weight, output_padding=extra_pair, **attrs)
    expected = onnx_run("ConvTranspose", data, weight, output_padding=extra_pair, **onnx_attrs(attrs))
    np.testing.assert_allclose(result, expected, atol=1e-4)


def test_a_result_does_not_depend_on_the_batch() -> None:
    data, weight = draw((5, 8, 13, 11)), draw((6, 8, 3, 3), 1)
    together = convolve(data, weight, padding=(1, 1, 1, 1))
    for image, result in zip(data, together, strict=True):
        np.testing.assert_array_equal(convolve(image[np.newaxis], weight, padding=(1, 1, 1, 1))[0], result)


def test_many_depthwise_channels_are_computed_in_blocks() -> None:
    data, weight = draw((1, 40, 70, 70)), draw((40, 1, 5, 5), 1)
    result = one("nn.conv2d", data, weight, strides=(2, 2), padding=(2, 2, 1, 1), groups=40)
    expected = onnx_run("Conv", data, weight, strides=(2, 2), pads=(2, 2, 1, 1), group=40)
    np.testing.assert_allclose(result, expected, atol=1e-4)


def test_empty_batch() -> None:
    assert one("nn.conv2d", draw((0, 2, 5, 5)), draw((3, 2, 3, 3))).shape == (0, 3, 3, 3)


def test_symbolic_batch() -> None:
    (result,) = infer("nn.conv2d", ("N", 3, 224, 224), (32, 3, 3, 3), strides=(2, 2), padding=(0, 0, 1, 1))
    assert result.shape == ("N", 32, 112, 112)


def test_symbolic_image() -> None:
    """An open size gives an open size."""
    same = {"strides": (2, 2), "padding": (1, 1, 1, 1)}
    half = infer("nn.conv2d", ("N", 3, "H", "W"), (8, 3, 3, 3), **same)[0].shape
    assert half == ("N", 8, "(H + 1)//2", "(W + 1)//2")
    assert infer("nn.conv2d", half, (8, 8, 3, 3), **same)[0].shape == ("N", 8, "(H + 3)//4", "(W + 3)//4")
    assert infer("nn.conv2d", ("N", 3, "H", "W"), (8, 3, 1, 1))[0].shape == ("N", 8, "H", "W")
    assert infer("nn.conv2d", ("N", 3, "H", "W"), (8, 3, 3, 1))[0].shape == ("N", 8, "H - 2", "W")


BAD = {
    "channels": (((1, 4, 5, 5), (2, 3, 3, 3)), {}, "number of channels of data is 4, but must be 3"),
    "groups": (((1, 4, 5, 5), (3, 2, 3, 3)), {"groups": 2}, "3 outputs do not split into groups=2"),
    "no groups": (((1, 4, 5, 5), (3, 2, 3, 3)), {"groups": 0}, "do not split into groups=0"),
    "rank": (((1, 4, 5), (2, 4, 3, 3)), {}, "data must have 4 dimensions, not 3"),
    "window": (((1, 4, 2, 5), (2, 4, 3, 3)), {}, r"a window of \(3, 3\) does not fit"),
    "strides": (((1, 4, 5, 5), (2, 4, 3, 3)), {"strides": (0, 1)}, r"strides=\(0, 1\) must be at least"),
    "padding": (((1, 4, 5, 5), (2, 4, 3, 3)), {"padding": (0, -1, 0, 0)}, "must not be negative; slice"),
    "symbolic channels": (((1, "C", 5, 5), (2, 4, 3, 3)), {}, "number of channels of data is C, but must be 4"),
    "list": (((1, 4, 5, 5), (2, 4, 3, 3)), {"strides": [1, 1]}, "attribute strides=.* valid tuple"),
    "three": (((1, 4, 5, 5), (2, 4, 3, 3)), {"strides": (1, 1, 1)}, "attribute strides"),
}


@pytest.mark.parametrize("case", BAD)
def test_errors(case: str) -> None:
    shapes, attrs, message = BAD[case]
    with pytest.raises(GraphError, match=message):
        infer("nn.conv2d", *shapes, **attrs)
