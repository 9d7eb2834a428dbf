"""The general convolution against integer.conv2d."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qbench.kernels.general_conv import general_conv_kernel, pack_general
from qbench.kernels.rounding import is_plain
from qbench.ops.integer.products import IntegerConv2d
from qbench.quant.rounding import ROUNDINGS
from tests.kernels.harness import codes, launch, stored
from tests.kernels.requantizing import parameters, requantized
from tests.kernels.test_pool import channels_last, numbers, window_fields

PAIR = st.tuples(st.integers(1, 3), st.integers(1, 3))
CASES = [("int16", "int8", "int16", rounding) for rounding in [None, *ROUNDINGS]]
CASES += [
    ("uint8", "int16", "int8", "tflite_single"),
    ("int16", "uint8", "int16", "fp32_rne"),
    ("int8", "uint8", "int8", None),
]


@st.composite
def convolutions(draw):
    groups, inputs, outputs = draw(
        st.sampled_from([(1, 3, 5), (1, 40, 70), (2, 3, 2), (6, 1, 1), (70, 1, 1), (3, 2, 66)])
    )
    size, strides, dilation = draw(PAIR), draw(PAIR), draw(PAIR)
    padding = tuple(draw(st.integers(0, 2)) for _ in range(4))
    attrs = {"strides": strides, "padding": padding, "dilation": dilation, "groups": groups}
    image = (draw(st.integers(1, 6)), draw(st.integers(1, 6)))
    sizes = (image[i] + padding[i] + padding[i + 2] - (size[i] - 1) * dilation[i] for i in range(2))
    assume(all(extent > 0 for extent in sizes))
    return attrs, (draw(st.integers(1, 2)), groups * inputs, *image), (groups * outputs, inputs, *size)


@pytest.mark.parametrize(("dtype", "weight_dtype", "result_dtype", "rounding"), CASES)
@settings(max_examples=40)
@given(conv=convolutions(), seed=st.integers(0, 2**32), gap=st.integers(0, 2), threads=st.integers(1, 3))
def test_any_convolution(dtype, weight_dtype, result_dtype, rounding, conv, seed, gap, threads) -> None:
    attrs, shape, weight_shape = conv
    x, weight = numbers(seed, dtype, shape), numbers(seed + 1, weight_dtype, weight_shape)
    zero, weight_zero = int(numbers(seed, dtype, ())), int(numbers(seed, weight_dtype, ()))
    op = IntegerConv2d(**attrs, data_zero_point=zero, weight_zero_point=weight_zero, accumulator="int64")
    out = weight_shape[0]
    bias = (
        np.random.default_rng(seed).integers(-(2**40), 2**40, out)
        if rounding != "tflite_double"
        else np.zeros(out, int)
    )
    acc = op.compute(x, weight) + bias[:, None, None]
    if rounding == "tflite_double":
        assume(np.abs(acc).max(initial=0) < 2**31)
    nothing = dict.fromkeys(("mantissa", "shift", "multiplier"), np.zeros(out, np.int32))
    fields, wanted = (
        ({**nothing, "zero_point": 0, "low": 0, "high": 0}, acc)
        if rounding is None
        else requantized(acc, *parameters(seed, out, rounding), rounding, result_dtype)
    )
    packed = pack_general(weight.astype(np.int64) - weight_zero, attrs["groups"])
    largest = int(np.abs(packed.astype(np.int64)).max()) * int(np.abs(x.astype(np.int64) - zero).max())
    source = channels_last(x, gap)
    y, _ = stored(wanted.dtype.name, (wanted.shape[0], *wanted.shape[2:], out + gap))
    window = {"pool_size": weight_shape[2:], **attrs}
    small = np.abs(acc).max(initial=0) < 2**31
    plain = rounding is not None and bool(seed % 3 and small) and is_plain(fields["shift"], rounding)
    common = window_fields(window, source, y, 0)
    del common["channels"]
    launch(
        general_conv_kernel(source.dtype.str[1:], packed.dtype.str[1:], y.dtype.str[1:], rounding, plain), threads,
        weights=packed, bias=bias, groups=attrs["groups"], channels=out // attrs["groups"], depth=weight_shape[1],
        zero=zero + (128 if dtype == "int8" else 0), run=(2**31 - 1) // max(largest, 1), **common, **fields,
    )  # fmt: skip
    np.testing.assert_array_equal(y[..., :out], codes(wanted).transpose(0, 2, 3, 1))
    assert np.all(y[..., out:] == 77)
