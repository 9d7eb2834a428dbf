"""Pools and sums against nn.max_pool2d, integer.sum_pool2d and integer.sum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from qbench.kernels.epilogue import choose_epilogue
from qbench.kernels.isa import ISAS
from qbench.kernels.levels import Level
from qbench.kernels.pack import pack_scales
from qbench.kernels.pool import max_pool_kernel, sum_kernel, sum_pool_codes_kernel, sum_pool_kernel
from qbench.kernels.tile import Tile
from qbench.ops.float.pool import MaxPool2d
from qbench.ops.integer.window import IntegerSumPool2d
from qbench.ops.numeric.windows import pool_counts
from qbench.quant.rounding import POWER_OF_TWO, ROUNDINGS
from tests.kernels.harness import RUNNABLE, codes, launch, padded, stored
from tests.kernels.requantizing import is_plain_for, parameters, plain_shift, requantized

PAIR = st.tuples(st.integers(1, 3), st.integers(1, 3))
THREADS = st.integers(1, 3)


@st.composite
def pools(draw):
    """Attributes of a pool, the shape of its data, and gaps between pixels of data and result."""
    size, strides, dilation = draw(PAIR), draw(PAIR), draw(PAIR)
    reach = [(k - 1) * d + 1 for k, d in zip(size, dilation, strict=True)]
    padding = tuple(draw(st.integers(0, r - 1)) for r in reach * 2)
    attrs = {
        "pool_size": size, "strides": strides, "padding": padding, "dilation": dilation,
        "ceil_mode": draw(st.booleans()),
    }  # fmt: skip
    channels = draw(st.integers(1, 9) | st.sampled_from([64, 70, 130, 150]))
    shape = (draw(st.integers(1, 2)), channels, draw(st.integers(1, 9)), draw(st.integers(1, 9)))
    assume(all(count > 0 for count in MaxPool2d(**attrs).window.counts(shape[2:])))
    return attrs, shape, (draw(st.integers(0, 3)), draw(st.integers(0, 3)))


def channels_last(values: np.ndarray, gap: int) -> np.ndarray:
    n, c, h, w = values.shape
    memory = np.full((n, h, w, c + gap), 99, codes(values).dtype)
    memory[..., :c] = codes(values).transpose(0, 2, 3, 1)
    return padded(memory)


def window_fields(attrs, x, y, channels) -> dict:
    names = ("kh", "kw", "sh", "sw", "dh", "dw", "top", "left")
    window = (*attrs["pool_size"], *attrs["strides"], *attrs["dilation"], *attrs["padding"][:2])
    sides = {"x": x, "y": y}
    strides = {
        f"{side}_{name}": array.strides[axis] // array.itemsize
        for side, array in sides.items()
        for axis, name in enumerate(("image", "row", "pitch"))
    }
    n, height, width, _ = x.shape
    return {
        "x": x, "y": y, "images": n, "height": height, "width": width, "channels": channels,
        "out_height": y.shape[1], "out_width": y.shape[2], **strides, **dict(zip(names, window, strict=True)),
    }  # fmt: skip


def numbers(seed: int, dtype: str, shape) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("level", RUNNABLE)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
@given(pool=pools(), seed=st.integers(0, 2**32), threads=THREADS)
def test_max_pool(level, dtype, pool, seed, threads) -> None:
    attrs, shape, gaps = pool
    x = numbers(seed, dtype, shape)
    wanted = MaxPool2d(**attrs).compute(x)
    source = channels_last(x, gaps[0])
    out, offset = stored(dtype, (wanted.shape[0], *wanted.shape[2:], shape[1] + gaps[1]))
    launch(
        max_pool_kernel(level, out.dtype.str[1:]), threads, lowest=np.iinfo(dtype).min + offset,
        **window_fields(attrs, source, out, shape[1]),
    )  # fmt: skip
    np.testing.assert_array_equal(out[..., : shape[1]], codes(wanted).transpose(0, 2, 3, 1))
    assert np.all(out[..., shape[1] :] == 77)


def requantized_or_not(sums, seed, channels, rounding, dtype, plain) -> tuple[dict, np.ndarray]:
    if rounding is None:
        empty = dict.fromkeys(("mantissa", "shift", "multiplier"), np.zeros(channels, np.int32))
        return {**empty, "zero_point": 0, "low": 0, "high": 0}, sums
    mantissa, shift, multiplier = parameters(seed, channels, rounding)
    shift = plain_shift(shift, rounding) if plain else shift
    return requantized(sums, mantissa, shift, multiplier, rounding, dtype)


@pytest.mark.parametrize("rounding", [None, *ROUNDINGS])
@given(pool=pools(), seed=st.integers(0, 2**32), threads=THREADS, dtype=st.sampled_from(["int8", "uint8", "int16"]))
def test_sum_pool(rounding, pool, seed, threads, dtype) -> None:
    attrs, shape, gaps = pool
    x, zero = numbers(seed, dtype, shape), int(numbers(seed, dtype, ()))
    include = bool(seed % 2)
    counts = pool_counts(shape[2:], MaxPool2d(**attrs).window, include)
    denominator = int(np.lcm.reduce(counts.reshape(-1)))
    op = IntegerSumPool2d(
        **attrs, count_include_pad=include, denominator=denominator, data_zero_point=zero, accumulator="int64"
    )
    sums, plain = op.compute(x), is_plain_for(rounding, dtype)
    assume(not plain or np.abs(sums).max() < 2**31)
    fields, result = requantized_or_not(sums, seed, shape[1], rounding, dtype, plain)
    out, _ = stored(result.dtype.name, (shape[0], *sums.shape[2:], shape[1] + gaps[1]))
    source = channels_last(x, gaps[0])
    launch(
        sum_pool_kernel(source.dtype.str[1:], out.dtype.str[1:], rounding, plain), threads,
        zero=zero + (128 if dtype == "int8" else 0), factor=denominator // counts,
        **window_fields(attrs, source, out, shape[1]), **fields,
    )  # fmt: skip
    np.testing.assert_array_equal(out[..., : shape[1]], codes(result).transpose(0, 2, 3, 1))
    assert np.all(out[..., shape[1] :] == 77)


@pytest.mark.parametrize("rounding", [None, *sorted({*ROUNDINGS} - POWER_OF_TWO)])
@given(
    shape=st.tuples(st.integers(1, 4), st.integers(1, 60), st.sampled_from([1, 2, 7, 130])), gap=st.integers(0, 3),
    seed=st.integers(0, 2**32), threads=THREADS, dtype=st.sampled_from(["int8", "uint8", "int16"]),
)  # fmt: skip
def test_sum(rounding, shape, gap, seed, threads, dtype) -> None:
    x, zero = numbers(seed, dtype, shape), int(numbers(seed, dtype, ()))
    outer, middle, inner = shape
    sums = (x.astype(np.int64) - zero).sum(axis=1)
    plain = is_plain_for(rounding, dtype)
    fields, result = requantized_or_not(sums, seed, inner, rounding, dtype, plain)
    memory = np.full((outer, middle, inner + gap), 99, codes(x).dtype)
    memory[..., :inner] = codes(x)
    out, _ = stored(result.dtype.name, (outer, inner + gap))
    launch(
        sum_kernel(memory.dtype.str[1:], out.dtype.str[1:], rounding, plain), threads, x=memory, y=out,
        outer=outer, middle=middle, inner=inner, x_outer=middle * (inner + gap), x_middle=inner + gap,
        y_outer=inner + gap, zero=zero + (128 if dtype == "int8" else 0), **fields,
    )  # fmt: skip
    np.testing.assert_array_equal(out[:, :inner], codes(result))
    assert np.all(out[:, inner:] == 77)


@pytest.mark.parametrize("level", [level for level in RUNNABLE if level != Level.PORTABLE])
@pytest.mark.parametrize("rounding", ["tflite_single", "fp32_rne"])
@given(pool=pools(), seed=st.integers(0, 2**32), threads=THREADS, dtype=st.sampled_from(["int8", "uint8"]))
def test_sum_pool_of_codes_in_vectors(level, rounding, pool, seed, threads, dtype) -> None:
    attrs, shape, gaps = pool
    x, zero = numbers(seed, dtype, shape), int(numbers(seed, dtype, ()))
    counts = pool_counts(shape[2:], MaxPool2d(**attrs).window, False)
    denominator = int(np.lcm.reduce(counts.reshape(-1)))
    op = IntegerSumPool2d(**attrs, denominator=denominator, data_zero_point=zero, accumulator="int64")
    sums = op.compute(x)
    mantissa, shift, multiplier = parameters(seed, shape[1], rounding)
    fields, result = requantized(sums, mantissa, shift, multiplier, rounding, dtype)
    bound = np.full(shape[1], int((counts * (denominator // counts)).max()) * 255)
    isa = ISAS[level]
    kind = choose_epilogue(rounding, bound, mantissa, shift, multiplier, isa.rounds_down)
    assume(kind != "exact")
    own = [fields.pop(name) for name in ("mantissa", "shift", "multiplier")]
    fields["scales"] = pack_scales(kind, (*own, fields["zero_point"]), 1, Tile(1, 4), isa.lanes)
    source = channels_last(x, gaps[0])
    out, _ = stored(dtype, (shape[0], *sums.shape[2:], shape[1] + gaps[1]))
    launch(
        sum_pool_codes_kernel(level, kind), threads, zero=zero + (128 if dtype == "int8" else 0),
        factor=denominator // counts, **window_fields(attrs, source, out, shape[1]), **fields,
    )  # fmt: skip
    np.testing.assert_array_equal(out[..., : shape[1]], codes(result).transpose(0, 2, 3, 1))
    assert np.all(out[..., shape[1] :] == 77)
