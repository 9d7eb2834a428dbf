"""Convolution kernels against NumPy's integer convolution, bit for bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qbench.kernels.conv import conv_kernel
from qbench.kernels.epilogue import choose_epilogue
from qbench.kernels.isa import ISAS
from qbench.kernels.levels import Level
from qbench.kernels.matrix import MATRIX, pack_matrix, steps_of
from qbench.kernels.pack import offsets, pack_channels, pack_scales, pack_weights, packing
from qbench.kernels.rounding import two_parts
from qbench.kernels.shape import TILE_COSTS, choose_tile
from qbench.ops.integer.products import IntegerConv2d
from qbench.quant.fixed_point import quantized_multiplier
from qbench.quant.rescaling import rescale, rescale_float32, rescale_float64, rounding_shift
from qbench.quant.rounding import POWER_OF_TWO, ROUNDINGS
from tests.kernels.harness import RUNNABLE, WITH_MATRICES, launch


def rounds_down(level):
    return level.vectors in ISAS and ISAS[level.vectors].rounds_down


def requantized(acc, real, rounding):
    """The rescaled accumulators and the kernel's parameters: mantissa, shift, multiplier."""
    mantissa, shift = quantized_multiplier(real)
    multiplier = real.astype(np.float32)
    column = (slice(None), None, None)
    if rounding == "fp32_rne":
        return rescale_float32(acc, multiplier[column]), mantissa, shift, multiplier
    if rounding == "fp64_away":
        return rescale_float64(acc, real[column]), *two_parts(real)
    if rounding in POWER_OF_TWO:
        right = 1 - shift
        mantissa = np.full_like(mantissa, 2**30)
        return rounding_shift(acc, right[column], rounding), mantissa, shift, multiplier
    return rescale(acc, mantissa[column], shift[column], rounding), mantissa, shift, multiplier


def epilogue_of(rng, sums, bound, rounding, exponents, exact, floats=False):
    """An epilogue for scales of such powers of two, what it takes, and what it makes of the sums before the clip."""
    channels = len(bound)
    if rounding is None:
        none = np.zeros(channels, np.int32)
        return "accumulators", {"rounding": 0, "mantissa": none, "shift": none, "multiplier": none}, sums
    real = 2.0 ** rng.uniform(*exponents, channels)
    if rounding in POWER_OF_TWO:
        real = 2.0 ** np.floor(np.log2(real))
    scaled, mantissa, shift, multiplier = requantized(sums, real, rounding)
    name = "exact" if exact else choose_epilogue(rounding, bound, mantissa, shift, multiplier, floats)
    taken = {"rounding": ROUNDINGS.index(rounding), "mantissa": mantissa, "shift": shift, "multiplier": multiplier}
    return name, taken, scaled


def tile_of(data, level):
    """One that the level has, and that of matrices for half of the cases."""
    tiles = [MATRIX] if level is Level.AMX and data.draw(st.booleans()) else [*TILE_COSTS[level]]
    return data.draw(st.sampled_from(tiles))


def bias_of(epilogue, bias):
    return bias.astype(np.int64 if epilogue == "exact" else np.int32)


def run(level, tile, epilogue, x, weight, op, bias, fields, threads, out_pitch, size, y="u1", runs=None, reals=None):
    """Lay out one convolution as the planner does; x is (n, c, h, w) codes or int16."""
    element = x.dtype.str[1:]
    n, _, height, width = x.shape
    channels, depth, *kernel = weight.shape
    lanes, group = packing(level, element)
    groups = op.groups
    output = tuple(
        (extent + before + after - d * (k - 1) - 1) // s + 1
        for extent, before, after, d, k, s in zip(
            (height, width), op.padding[:2], op.padding[2:], op.dilation, kernel, op.strides, strict=True
        )
    )
    pixels = n * output[0] * output[1]
    pitch = x.shape[1]
    memory = np.full(x.size + 128, 77, x.dtype)
    memory[: x.size] = x.transpose(0, 2, 3, 1).reshape(-1)
    plain = kernel == [1, 1] and op.strides == (1, 1) and op.padding == (0, 0, 0, 0)
    table = offsets(
        images=n, size=(height, width), output=output, kernel=tuple(kernel), strides=op.strides,
        padding=op.padding[:2], dilation=op.dilation, rows=tile.rows,
        bytes_apart=tuple(x.itemsize * pitch * pixels for pixels in (height * width, width, 1)),
    )  # fmt: skip
    ordered = weight.reshape(groups, channels // groups, depth, -1).swapaxes(2, 3)
    steps = steps_of(weight[0].size) if tile == MATRIX else depth
    packed = pack_matrix(ordered) if tile == MATRIX else pack_weights(ordered, tile, lanes, group)
    kind = np.dtype("i4" if epilogue == "accumulators" and y != "f4" else y)
    out = np.full((pixels + 1, out_pitch), 99, kind)
    zeros = np.full(depth + 63, op.data_zero_point, x.dtype)
    per_channel = {
        name: pack_channels(values, groups, tile, lanes)
        for name, values in {**fields, "bias": bias}.items()
        if isinstance(values, np.ndarray)
    }
    constants = (fields["mantissa"], fields["shift"], fields["multiplier"], fields["zero_point"] if y == "u1" else 0)
    scales = pack_scales(epilogue, constants, groups, tile, lanes, reals)
    numbers = {name: value for name, value in fields.items() if not isinstance(value, np.ndarray)}
    launch(
        conv_kernel(level, tile, epilogue, element, y), threads, x=memory, zeros=zeros,
        table=0 if plain else table, weights=packed, out=out, pixels=pixels, taps=kernel[0] * kernel[1],
        depth=depth, groups=groups, channels=channels // groups,
        pitch=pitch, out_pitch=out_pitch, chunk=size, scales=scales, **per_channel, **numbers,
        group_pitch=depth, group_out=channels // groups, part_steps=steps,
        **dict(zip(("run_taps", "run_steps"), runs or (kernel[0] * kernel[1], steps), strict=True)),
    )  # fmt: skip
    assert np.all(out[:, channels:] == 99)
    assert np.all(out[pixels:] == 99)
    return out[:pixels, :channels].reshape(n, *output, channels).transpose(0, 3, 1, 2)


@st.composite
def cases(draw):
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    dilation = draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    padding = draw(st.tuples(*[st.integers(0, 2)] * 4))
    least = [
        max(1, d * (k - 1) + 1 - padding[i] - padding[i + 2])
        for i, (d, k) in enumerate(zip(dilation, kernel, strict=True))
    ]
    groups = draw(st.sampled_from([1, 1, 1, 2, 3]))
    strides, zero_point = draw(st.tuples(st.integers(1, 2), st.integers(1, 2))), draw(st.integers(0, 255))
    op = IntegerConv2d(strides=strides, padding=padding, dilation=dilation, groups=groups, data_zero_point=zero_point)
    size = tuple(draw(st.integers(low, low + 5)) for low in least)
    depth, channels = draw(st.integers(1, 20) | st.sampled_from([64, 128])), draw(st.integers(1, 70))
    if kernel == (1, 1) and draw(st.booleans()):
        op = IntegerConv2d(groups=groups, data_zero_point=zero_point)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x = rng.integers(0, 256, (draw(st.integers(1, 2)), depth * groups, *size), np.uint8)
    weight = rng.integers(-128, 128, (channels * groups, depth, *kernel)).astype(np.int8)
    return op, x, weight, rng


@pytest.mark.parametrize("level", WITH_MATRICES)
@given(
    case=cases(),
    data=st.data(),
    rounding=st.sampled_from([*ROUNDINGS, None]),
    threads=st.integers(1, 3),
    slack=st.integers(0, 3),
    chunk=st.integers(1, 5),
    largest=st.sampled_from([-12, -3, -1, 3]),
    exact=st.booleans(),
    floats=st.booleans(),
)
@settings(max_examples=100)
def test_equals_the_integer_convolution(level, case, data, rounding, threads, slack, chunk, largest, exact, floats):
    op, x, weight, rng = case
    tile = tile_of(data, level)
    channels = len(weight)
    bias = rng.integers(-(2**16), 2**16, channels)
    sums = op.compute(x, weight).astype(np.int64) + bias[:, None, None]
    flat = weight.reshape(channels, -1).astype(np.int64)
    bound, folded = np.abs(flat).sum(1) * 255 + np.abs(bias), bias - op.data_zero_point * flat.sum(1)
    name, taken, scaled = epilogue_of(
        rng, sums, bound, rounding, (-20, largest), exact=exact, floats=floats and rounds_down(level)
    )
    fields = {"zero_point": 3, "low": 1, "high": 250, **taken}
    assume((tile, name) != (MATRIX, "exact"))
    got = run(level, tile, name, x, weight, op, bias_of(name, folded), fields, threads, channels + slack, chunk)
    np.testing.assert_array_equal(got, scaled if rounding is None else np.clip(scaled + 3, 1, 250))


@pytest.mark.parametrize("level", RUNNABLE)
@given(
    case=cases(),
    data=st.data(),
    rounding=st.sampled_from([*ROUNDINGS, None]),
    threads=st.integers(1, 3),
    largest=st.sampled_from([-19, -11, -3]),
    exact=st.booleans(),
    y=st.sampled_from(["u1", "i2"]),
    zero_point=st.integers(-(2**15), 2**15 - 1),
)
@settings(max_examples=40)
def test_equals_the_integer_convolution_of_16_bits(level, case, data, rounding, threads, largest, exact, y, zero_point):
    """To 16 or 8 bits; sums of runs of the products are added in 64 bits."""
    op, codes, weight, rng = case
    tile = data.draw(st.sampled_from([*TILE_COSTS[level]]))
    op = replace(op, data_zero_point=zero_point, accumulator="int64")
    x = rng.integers(-(2**15), 2**15, codes.shape).astype(np.int16)
    channels, depth = weight.shape[:2]
    flat = weight.reshape(channels, -1).astype(np.int64)
    bias = rng.integers(-(2**20), 2**20, channels)
    sums = op.compute(x, weight) + bias[:, None, None]
    folded = bias - zero_point * flat.sum(1)
    target, low, high = (3, 1, 250) if y == "u1" else (-300, -(2**15), 32000)
    bound = np.abs(flat).sum(1) * 2**16 + np.abs(bias)
    exact |= level is Level.PORTABLE
    name, taken, scaled = epilogue_of(rng, sums, bound, rounding, (-30, largest), exact=exact)
    fields = {"zero_point": target, "low": low, "high": high, **taken}
    taps = weight[0, 0].size
    runs = data.draw(st.sampled_from([(taps, depth), (2, depth), (1, depth), (1, 3), (1, 1)]))
    ends = () if rounding is None else (y, runs)
    wide = weight.astype(np.int16)
    got = run(level, tile, name, x, wide, op, bias_of(name, folded), fields, threads, channels, 2, *ends)
    np.testing.assert_array_equal(
        got, sums.astype(np.int32) if rounding is None else np.clip(scaled + target, low, high)
    )


@pytest.mark.parametrize("level", [level for level in WITH_MATRICES if level is not Level.PORTABLE])
@given(
    case=cases(),
    data=st.data(),
    rounding=st.sampled_from([*ROUNDINGS, None]),
    largest=st.sampled_from([-12, -3, 3]),
    bounds=st.sampled_from([(3, 1, 250), (-300, -(2**15), 32000)]),
)
@settings(max_examples=40)
def test_reals_are_those_that_the_integers_stand_for(level, case, data, rounding, largest, bounds):
    op, x, weight, rng = case
    tile = tile_of(data, level)
    channels, (zero_point, low, high) = len(weight), bounds
    bias = rng.integers(-(2**16), 2**16, channels)
    sums = op.compute(x, weight).astype(np.int64) + bias[:, None, None]
    flat = weight.reshape(channels, -1).astype(np.int64)
    bound, folded = np.abs(flat).sum(1) * 255 + np.abs(bias), bias - op.data_zero_point * flat.sum(1)
    name, taken, scaled = epilogue_of(rng, sums, bound, rounding, (-20, largest), exact=False)
    assume(name != "exact")
    fields = {"zero_point": zero_point, "low": low, "high": high, **taken}
    scales = np.exp(rng.normal(-5, 3, channels)).astype(np.float32)
    given = (level, tile, name, x, weight, op, bias_of(name, folded), fields, 2, channels, 2)
    integers = sums if rounding is None else np.clip(scaled + zero_point, low, high) - zero_point
    np.testing.assert_array_equal(
        run(*given, y="f4", reals=scales), integers.astype(np.float32) * scales[:, None, None]
    )


@pytest.mark.parametrize("level", RUNNABLE)
@pytest.mark.parametrize("shift", [-23, -9, -2, 0, 3])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=20)
def test_fixed_point_beside_its_ties(level, shift, seed):
    """Accumulators that lie where the result changes, or one off, for mantissas of all kinds."""
    rng = np.random.default_rng(seed)
    channels = 256
    mantissa = 2**30 + np.minimum(rng.integers(0, 2**30, channels), 2 ** rng.integers(1, 31, channels) - 1)
    results = rng.integers(-300, 300, channels)
    acc = -(-(2 * results - 1) * 2 ** (30 - shift) // mantissa) + rng.integers(-1, 2, channels)
    acc = np.clip(acc, -(2**24), 2**24)
    tile = choose_tile(level, 1, channels, 4)
    lanes, group = packing(level)
    shifts, multipliers = np.full(channels, shift, np.int32), np.zeros(channels, np.float32)
    parameters = (mantissa.astype(np.int32), shifts, multipliers)
    expected = np.clip(rescale(acc, mantissa, shifts, "tflite_single") + 128, 0, 255)
    names = {
        choose_epilogue("tflite_single", np.abs(acc), *parameters, floats and rounds_down(level)) for floats in (0, 1)
    }
    for name in names - {"exact"}:
        out = np.zeros(channels, np.uint8)
        spread = [pack_channels(values, 1, tile, lanes) for values in parameters]
        launch(
            conv_kernel(level, tile, name), x=np.zeros(4, np.uint8), zeros=0, table=0,
            weights=pack_weights(np.zeros((1, channels, 1, 4), np.int8), tile, lanes, group),
            out=out, bias=pack_channels(acc.astype(np.int32), 1, tile, lanes),
            mantissa=spread[0], shift=spread[1], multiplier=spread[2],
            scales=pack_scales(name, (*parameters, 128), 1, tile, lanes),
            pixels=1, taps=1, depth=4, run_taps=1, run_steps=4, part_steps=4, groups=1, channels=channels, pitch=4,
            group_pitch=4, group_out=channels, out_pitch=channels, chunk=1,
            rounding=ROUNDINGS.index("tflite_single"), zero_point=128, low=0, high=255,
        )  # fmt: skip
        np.testing.assert_array_equal(out, expected, name)
