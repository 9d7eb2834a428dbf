"""Depthwise float32 convolutions against the NumPy op."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import qbench.ops  # noqa: F401
from qbench.errors import GraphError
from qbench.ir.op import OPS
from qbench.ir.types import TensorType
from qbench.kernels.floats.depthwise import float_depthwise_kernel, pack_depthwise, pad_channels
from tests.kernels.harness import COMPILED, launch

PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))


def places(name, images):
    steps = (step // images.itemsize for step in images.strides[:3])
    return dict(zip((f"{name}_image", f"{name}_row", f"{name}_pitch"), steps, strict=True))


@pytest.mark.parametrize("level", COMPILED)
@settings(max_examples=60)
@given(
    size=st.tuples(st.integers(1, 9), st.integers(1, 19)),
    kernel=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    strides=PAIRS,
    dilation=PAIRS,
    padding=st.tuples(*[st.integers(0, 9)] * 4),
    channels=st.sampled_from([1, 5, 16, 24, 33, 64, 70]),
    threads=st.integers(1, 3),
)
def test_depthwise_convolutions(level, size, kernel, strides, dilation, padding, channels, threads):
    rng = np.random.default_rng(0)
    op = OPS["nn.conv2d"](strides=strides, padding=padding, dilation=dilation, groups=channels)
    weight = rng.normal(size=(channels, 1, *kernel)).astype(np.float32)
    bias = rng.normal(size=channels).astype(np.float32)
    shape = (2, channels, *size)
    try:
        out = op.infer(TensorType(shape, "float32"), TensorType(weight.shape, "float32")).shape[2:]
    except GraphError:  # a window larger than the image
        reject()
    memory = rng.normal(size=2 * size[0] * size[1] * (channels + 3) + 32).astype(np.float32)
    x = memory[:-32].reshape(2, *size, channels + 3)
    y = rng.normal(size=(2, *out, channels + 2)).astype(np.float32)
    before = y.copy()
    fields = dict(
        zip(("kh", "kw", "sh", "sw", "dh", "dw", "top", "left"), kernel + strides + dilation + padding[:2], strict=True)
    )
    fields |= dict(zip(("height", "width", "out_height", "out_width"), (*size, *out), strict=True))
    fields |= {
        "x": x,
        "weights": pack_depthwise(weight[:, 0]),
        "bias": pad_channels(bias),
        "images": 2,
        "channels": channels,
        "low": -1,
        "high": 6,
    }
    fields |= places("x", x) | places("out", y)
    launch(float_depthwise_kernel(level), threads, out=y, **fields)
    (sums,) = op.compute_all((x[..., :channels].transpose(0, 3, 1, 2), weight))
    expected = np.clip(sums.transpose(0, 2, 3, 1) + bias, -1, 6)
    np.testing.assert_allclose(y[..., :channels], expected, rtol=1e-5, atol=1e-5)
    assert np.array_equal(y[..., channels:], before[..., channels:])
    launch(float_depthwise_kernel(level), threads % 3 + 1, out=before, **fields)
    assert np.array_equal(y, before)  # any split gives the same bits
