"""Depthwise float32 convolutions against the NumPy op."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import qbench.ops  # noqa: F401
from qbench.errors import GraphError
from qbench.ir.op import OPS
from qbench.ir.types import TensorType
from qbench.kernels.floats.depthwise import float_depthwise_kernel, known_rows, pack_depthwise, pad_channels
from qbench.kernels.floats.slide import Rows
from qbench.kernels.floats.vectors import VECTORS
from qbench.kernels.levels import Level
from tests.kernels.harness import COMPILED, launch

PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))


def places(name, images):
    steps = (step // images.itemsize for step in images.strides[:3])
    return dict(zip((f"{name}_image", f"{name}_row", f"{name}_pitch"), steps, strict=True))


def check(level, size, kernel, strides, dilation, padding, channels, gap, threads):
    """Compare the kernels of a level with the op; any split of the work, and what is known of rows, change no bit."""
    rng = np.random.default_rng(0)
    op = OPS["nn.conv2d"](strides=strides, padding=padding, dilation=dilation, groups=channels)
    weight = rng.normal(size=(channels, 1, *kernel)).astype(np.float32)
    bias = rng.normal(size=channels).astype(np.float32)
    shape = (2, channels, *size)
    try:
        out = op.infer(TensorType(shape, "float32"), TensorType(weight.shape, "float32")).shape[2:]
    except GraphError:  # a window larger than the image
        reject()
    memory = rng.normal(size=2 * size[0] * size[1] * (channels + gap) + 32).astype(np.float32)
    x = memory[:-32].reshape(2, *size, channels + gap)
    y = rng.normal(size=(2, *out, channels + gap)).astype(np.float32)
    before = y.copy()
    fields = dict(
        zip(("kh", "kw", "sh", "sw", "dh", "dw", "top", "left"), kernel + strides + dilation + padding[:2], strict=True)
    )
    fields |= dict(zip(("height", "width", "out_height", "out_width"), (*size, *out), strict=True))
    fields |= {"x": x, "images": 2, "channels": channels, "low": -1, "high": 6}
    fields |= places("x", x) | places("out", y)
    rows = known_rows(level, fields)
    packed = {"weights": pack_depthwise(weight[:, 0]), "bias": pad_channels(bias)}
    launch(float_depthwise_kernel(level), threads, out=y, **fields, **packed)
    (sums,) = op.compute_all((x[..., :channels].transpose(0, 3, 1, 2), weight))
    expected = np.clip(sums.transpose(0, 2, 3, 1) + bias, -1, 6)
    np.testing.assert_allclose(y[..., :channels], expected, rtol=1e-5, atol=1e-5)
    assert np.array_equal(y[..., channels:], before[..., channels:])
    if rows is not None:
        packed["weights"] = pack_depthwise(np.tile(weight[:, 0], (rows.neighbours, 1, 1)))
        packed["bias"] = pad_channels(np.tile(bias, rows.neighbours))
    launch(float_depthwise_kernel(level, rows), threads % 3 + 1, out=before, **fields, **packed)
    assert np.array_equal(y, before)
    return rows


@pytest.mark.parametrize("level", COMPILED)
@settings(max_examples=60)
@given(
    size=st.tuples(st.integers(1, 9), st.integers(1, 19)),
    kernel=st.tuples(st.integers(1, 5), st.sampled_from([1, 2, 4])),
    strides=PAIRS,
    dilation=PAIRS,
    padding=st.tuples(*[st.integers(0, 9)] * 4),
    channels=st.sampled_from([1, 5, 16, 24, 33, 64, 70]),
    gap=st.sampled_from([0, 3]),
    threads=st.integers(1, 3),
)
def test_depthwise_convolutions(level, **case):
    assert check(level, **case) is None


@pytest.mark.parametrize("level", [level for level in COMPILED if level in VECTORS and level is not Level.AVXVNNI])
@pytest.mark.parametrize(
    ("columns", "stride", "left", "right", "channels"),
    [(3, 1, 1, 1, 40), (3, 2, 0, 1, 24), (3, 2, 1, 0, 16), (5, 1, 2, 2, 16), (7, 1, 3, 3, 8), (3, 1, 0, 1, 4)],
)
@settings(max_examples=30)
@given(height=st.integers(1, 9), width=st.integers(1, 75), gap=st.sampled_from([0, 0, 3]), threads=st.integers(1, 3))
def test_rows_that_are_known(level, columns, stride, left, right, channels, height, width, gap, threads):
    """Widths around the tiles' and below them, so that their edges meet; AVX-VNNI has the vectors of AVX2."""
    padding = (1, left, 1, right)
    case = {
        "kernel": (3, columns),
        "strides": (1, stride),
        "dilation": (1, 1),
        "padding": padding,
        "channels": channels,
    }
    rows = check(level, (height, width), **case, gap=gap, threads=threads)
    assert rows == Rows(columns, stride, left, rows.right, rows.neighbours)
    several = not gap and stride == 1 and VECTORS[level].lanes % channels == 0
    assert rows.neighbours == (VECTORS[level].lanes // channels if several else 1)
