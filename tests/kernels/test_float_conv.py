"""float32 convolutions and products in tiles, against the NumPy ops."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import qbench.ops  # noqa: F401
from qbench.errors import GraphError
from qbench.ir.op import OPS
from qbench.ir.types import TensorType
from qbench.kernels.floats.conv import TILES, choose_chunk, choose_tile, float_conv_kernel, panel_lanes
from qbench.kernels.floats.pack import pack_kernel
from qbench.kernels.levels import Level
from qbench.kernels.pack import offsets, pack_channels, pack_weights
from tests.kernels.harness import COMPILED, launch

PAIRS = st.tuples(st.integers(1, 3), st.integers(1, 3))


def close(y, expected):
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5 * max(1, np.abs(expected).max(initial=0)))


def run(level, tile, x, weights, bias, table, out, threads=1, **fields):
    """Weights as [groups, channels, taps, depth]."""
    groups, channels, taps, depth = weights.shape
    lanes = panel_lanes(level)
    launch(
        float_conv_kernel(level, tile),
        threads,
        x=x,
        out=out,
        zeros=np.zeros(depth, np.float32),
        table=table,
        weights=pack_weights(weights, tile, lanes, 1),
        bias=pack_channels(bias, groups, tile, lanes),
        groups=groups,
        channels=channels,
        taps=taps,
        depth=depth,
        **{"low": -np.inf, "high": np.inf, "group_pitch": depth, "group_out": channels, "chunk": 2, "added": 0}
        | fields,
    )


@pytest.mark.parametrize("level, tile", [(level, tile) for level in COMPILED for tile in TILES[level]], ids=str)
@settings(max_examples=12)
@given(
    size=st.tuples(st.integers(1, 7), st.integers(1, 9)),
    kernel=PAIRS,
    strides=PAIRS,
    dilation=PAIRS,
    padding=st.tuples(*[st.integers(0, 3)] * 4),
    groups=st.integers(1, 2),
    channels=st.tuples(st.integers(1, 9), st.sampled_from([1, 3, 16, 40, 70])),
    adds=st.booleans(),
    threads=st.integers(1, 3),
)
def test_convolutions(level, tile, size, kernel, strides, dilation, padding, groups, channels, adds, threads):
    rng = np.random.default_rng(0)
    depth, outputs = channels
    op = OPS["nn.conv2d"](strides=strides, padding=padding, dilation=dilation, groups=groups)
    weight = rng.normal(size=(groups * outputs, depth, *kernel)).astype(np.float32)
    bias = rng.normal(size=groups * outputs).astype(np.float32)
    try:
        shape = (2, groups * depth, *size)
        out_shape = op.infer(TensorType(shape, "float32"), TensorType(weight.shape, "float32")).shape
    except GraphError:  # a window larger than the image
        reject()
    x = rng.normal(size=(2, *size, groups * depth + 3)).astype(np.float32)
    y = rng.normal(size=(2, *out_shape[2:], groups * outputs + 2)).astype(np.float32)
    before = y.copy()
    table = offsets(
        images=2,
        size=size,
        output=out_shape[2:],
        kernel=kernel,
        strides=strides,
        padding=padding[:2],
        dilation=dilation,
        bytes_apart=x.strides[:3],
        rows=tile.rows,
    )
    taps = weight.transpose(0, 2, 3, 1).reshape(groups, outputs, kernel[0] * kernel[1], depth)
    pixels = 2 * out_shape[2] * out_shape[3]
    fields = {"pixels": pixels, "pitch": x.shape[3], "out_pitch": y.shape[3], "low": -1.5, "high": 6}
    added = rng.normal(size=y.shape).astype(np.float32)  # as long as the results: nothing behind it is read
    if adds:
        fields["added"] = added
    run(level, tile, x, np.ascontiguousarray(taps), bias, table, y, threads, **fields)
    (sums,) = op.compute_all((x[..., : groups * depth].transpose(0, 3, 1, 2), weight))
    total = sums.transpose(0, 2, 3, 1) + bias
    expected = np.clip(total + added[..., : groups * outputs] * adds, -1.5, 6)
    close(y[..., : groups * outputs], expected)
    assert np.array_equal(y[..., groups * outputs :], before[..., groups * outputs :])
    again = before.copy()
    run(level, tile, x, np.ascontiguousarray(taps), bias, table, again, threads % 3 + 1, **fields)
    assert np.array_equal(y, again)  # any split gives the same bits


@pytest.mark.parametrize("level", COMPILED)
@settings(max_examples=30)
@given(
    batch=st.integers(1, 3),
    sizes=st.tuples(st.integers(1, 20), st.integers(1, 30), st.integers(1, 70)),
    transposed=st.booleans(),
    shared=st.booleans(),
    threads=st.integers(1, 3),
)
def test_batched_products_with_an_operand_packed_on_the_way(level, batch, sizes, transposed, shared, threads):
    rows, depth, columns = sizes
    rng = np.random.default_rng(0)
    a = rng.normal(size=(batch, rows, depth)).astype(np.float32)
    b = rng.normal(size=(1 if shared else batch, *((columns, depth) if transposed else (depth, columns)))).astype("f4")
    tile = choose_tile(level, rows, columns, depth)
    width = tile.vectors * panel_lanes(level)
    panels = -(-columns // width)
    packed = np.full((batch, panels, depth, width), np.nan, np.float32)
    steps = {"x_group": 0 if shared else depth * columns}
    steps |= {"x_depth": 1, "x_channel": depth} if transposed else {"x_depth": columns, "x_channel": 1}
    launch(pack_kernel(width), threads, x=b, out=packed, groups=batch, depth=depth, channels=columns, **steps)
    y = np.zeros((batch, rows, columns), np.float32)
    launch(
        float_conv_kernel(level, tile),
        threads,
        x=a,
        out=y,
        zeros=0,
        table=0,
        weights=packed,
        added=0,
        bias=np.zeros(batch * panels * width, np.float32),
        pixels=rows,
        taps=1,
        depth=depth,
        groups=batch,
        channels=columns,
        pitch=depth,
        group_pitch=rows * depth,
        out_pitch=columns,
        group_out=rows * columns,
        chunk=choose_chunk(tile, rows, depth, packed[0].nbytes),
        low=-np.inf,
        high=np.inf,
    )
    (expected,) = OPS["nn.batch_matmul"](transpose_rhs=transposed).compute_all((a, b))
    close(y, expected)


@pytest.mark.parametrize("level", TILES)
def test_a_tile_is_chosen_that_fits(level):
    assert choose_tile(level, 1, 1000, 512).rows == 1
    if level is Level.AVX512VNNI:
        assert choose_tile(level, 49, 512, 512).rows == 10  # 8 rows are left over by other tiles
        assert choose_tile(level, 196, 256, 1024).rows <= 10  # rows a page apart
        assert choose_tile(level, 56 * 56, 16, 16).vectors == 1
