"""Pools, reductions, resizing and softmax on channels-last floats, against the NumPy ops."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import qbench.ops  # noqa: F401
from qbench.errors import GraphError
from qbench.ir.op import OPS
from qbench.ir.types import TensorType
from qbench.kernels.floats.pool import pool_kernel
from qbench.kernels.floats.reduce import reduce_kernel
from qbench.kernels.floats.resize import resize_kernel
from qbench.kernels.floats.softmax import softmax_kernel
from qbench.kernels.levels import Level
from tests.kernels.harness import COMPILED, launch

PORTABLE = Level.PORTABLE
PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))


def close(y, expected):
    step = 1e-5 if y.dtype == np.float32 else 2**-10
    np.testing.assert_allclose(y.astype(np.float64), expected.astype(np.float64), rtol=step, atol=1e-6)


def pixels(images, height, width, channels, dtype="float32", extra=3, seed=0):
    """Channels-last images as a slice of wider ones, with the fields that say where they lie."""
    shape = (images, height, width, channels + extra)
    memory = np.random.default_rng(seed).normal(size=np.prod(shape) + 64).astype(dtype)  # 128 bytes more can be read
    return memory[:-64].reshape(shape)[..., 1 : channels + 1]


def beside_of(images):
    """What lies between the pixels."""
    channels, pitch = images.shape[3], images.strides[2] // images.itemsize
    return np.lib.stride_tricks.as_strided(images, (*images.shape[:3], pitch), images.strides)[
        :, :-1, :, channels:
    ].copy()


def places(name, images):
    return dict(
        zip(
            (f"{name}_image", f"{name}_row", f"{name}_pitch"),
            (s // images.itemsize for s in images.strides[:3]),
            strict=True,
        )
    )


def nchw(images):
    return np.ascontiguousarray(images.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("kind", ["max", "average"])
@settings(max_examples=40)
@given(
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    pool=PAIRS,
    strides=PAIRS,
    dilation=PAIRS,
    padding=st.tuples(*[st.integers(0, 2)] * 4),
    flags=st.tuples(st.booleans(), st.booleans()),
    channels=st.sampled_from([1, 3, 16, 300]),
    threads=st.integers(1, 3),
)
def test_pools(kind, dtype, size, pool, strides, dilation, padding, flags, channels, threads):
    x = pixels(2, *size, channels, dtype)
    attrs = {"pool_size": pool, "strides": strides, "padding": padding, "dilation": dilation, "ceil_mode": flags[0]}
    include = flags[1] and kind == "average"
    op = OPS["nn.max_pool2d"](**attrs) if kind == "max" else OPS["nn.avg_pool2d"](**attrs, count_include_pad=include)
    try:
        out = op.infer(TensorType((2, channels, *size), dtype)).shape[2:]
    except GraphError:  # a window larger than the image
        reject()
    y = pixels(2, *out, channels, dtype, seed=1)
    edge = padding if include else (0, 0, 0, 0)
    fields = dict(zip(("before_rows", "before_columns", "after_rows", "after_columns"), edge, strict=True))
    fields |= dict(
        zip(
            ("kh", "kw", "sh", "sw", "dh", "dw", "top", "left"), (*pool, *strides, *dilation, *padding[:2]), strict=True
        )
    )
    fields |= dict(zip(("height", "width", "out_height", "out_width"), (*size, *out), strict=True))
    beside = beside_of(y).copy()
    fields |= {"images": 2, "channels": channels, **places("x", x), **places("out", y)}
    for level in COMPILED:
        y[:] = 7
        launch(pool_kernel(kind, dtype, level), threads, x=x, out=y, **fields)
        close(nchw(y), op.compute_all((nchw(x),))[0])
        assert np.array_equal(beside_of(y), beside)


@pytest.mark.parametrize(
    "function, dtype", [*((name, "float32") for name in ("mean", "sum", "prod", "max", "min")), ("mean", "float16")]
)
@settings(max_examples=25)
@given(shape=st.tuples(*[st.integers(1, 9)] * 3), inner=st.sampled_from([1, 3, 70]), threads=st.integers(1, 3))
def test_reductions_over_images_and_over_rows(function, dtype, shape, inner, threads):
    outer, rows, columns = shape
    x = (
        pixels(outer, rows, columns, inner, dtype, extra=3 if inner > 1 else 0)
        if inner > 1
        else (np.random.default_rng(0).normal(size=(outer, rows, columns * 7, 1)).astype(dtype))
    )
    y = np.zeros((outer, 1, 1, inner), dtype)
    fields = {"outer": outer, "rows": rows, "columns": x.shape[2], "inner": inner, "y_outer": inner}
    fields |= dict(zip(("x_outer", "x_row", "x_column", "x_inner"), (s // x.itemsize for s in x.strides), strict=True))
    launch(reduce_kernel(function, dtype, PORTABLE), threads, x=x, y=y, **fields)
    expected = OPS[function](axes=(1, 2)).compute_all((x.astype(np.float64),))[0].astype(dtype)
    close(y, expected)


@pytest.mark.parametrize("logarithm", [False, True])
@given(
    rows=st.integers(0, 5) | st.integers(15, 40),
    columns=st.integers(1, 5) | st.integers(1, 70) | st.just(1500),
    threads=st.integers(1, 3),
    masked=st.integers(0, 3),
)
def test_softmax(logarithm, rows, columns, threads, masked):
    x = (np.random.default_rng(columns).normal(size=(rows, columns)) * 9).astype(np.float32)
    x[:, 1 : 1 + masked] = -np.inf
    y = np.zeros_like(x)
    kernel = softmax_kernel(logarithm)
    launch(kernel, threads, x=x, y=y, rows=rows, columns=columns, x_row=columns, y_row=columns)
    close(y, OPS["nn.log_softmax" if logarithm else "nn.softmax"]().compute_all((x,))[0])
    assert (y[:, 1 : 1 + masked] == (-np.inf if logarithm else 0)).all()


@given(rows=st.integers(1, 20), columns=st.integers(1, 5) | st.integers(1, 70), threads=st.integers(1, 3))
def test_softmax_of_rows_that_are_masked_altogether(rows, columns, threads):
    x = (np.random.default_rng(columns).normal(size=(rows, columns)) * 9).astype(np.float32)
    x[rows // 2] = -np.inf
    y = np.ones_like(x)
    launch(
        softmax_kernel(False, safe=True), threads, x=x, y=y, rows=rows, columns=columns, x_row=columns, y_row=columns
    )
    close(y, OPS["nn.softmax"](safe=True).compute_all((x,))[0])
    assert (y[rows // 2] == 0).all()


@given(
    size=PAIRS,
    out=PAIRS.map(lambda pair: (pair[0] * 2, pair[1] * 3)),
    method=st.sampled_from(["nearest", "linear", "cubic"]),
)
def test_resizing(size, out, method):
    x, y = pixels(2, *size, 5), pixels(2, *out, 5, seed=1)
    op = OPS["image.resize2d"](size=out, method=method)
    (row_index, row_weight), (column_index, column_weight) = (op.neighbours(axis, size[axis]) for axis in (0, 1))
    launch(
        resize_kernel("float32", PORTABLE),
        2,
        x=x,
        y=y,
        images=2,
        channels=5,
        height=size[0],
        width=size[1],
        out_height=out[0],
        out_width=out[1],
        row_index=np.ascontiguousarray(row_index),
        row_weight=row_weight.astype(np.float32),
        row_taps=row_index.shape[1],
        column_index=np.ascontiguousarray(column_index),
        column_weight=column_weight.astype(np.float32),
        column_taps=column_index.shape[1],
        **places("x", x),
        **places("y", y),
    )
    close(nchw(y), op.compute_all((nchw(x),))[0])
