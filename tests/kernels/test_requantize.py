"""Requantize and multiply kernels against their ops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.kernels.requantize import multiply_kernel, requantize_kernel
from qbench.kernels.rounding import is_plain
from qbench.kernels.walk import strided
from qbench.quant.rounding import ROUNDINGS
from tests.kernels.harness import codes, launch, stored
from tests.kernels.requantizing import is_plain_for, parameters, plain_shift, requantized

THREADS = st.integers(1, 3)
SEED = st.integers(0, 2**32)
SHAPES = st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 3) | st.integers(60, 130))


def numbers(seed: int, dtype: str, shape) -> np.ndarray:
    info = np.iinfo(dtype)
    high = min(info.max, 2**61)
    values = np.random.default_rng(seed).integers(max(info.min, -(2**61)), high, shape, np.int64, endpoint=True)
    return (values >> (seed % 40) if dtype == "int64" else values).astype(dtype)


def elements(array: np.ndarray) -> list[int]:
    """Strides, 0 along axes of size 1."""
    return [s // array.itemsize if n > 1 else 0 for n, s in zip(array.shape, array.strides, strict=True)]


def plainly(acc: np.ndarray, shift: np.ndarray, rounding) -> bool:
    return int(np.abs(acc).max()) < 2**31 and is_plain(shift, rounding)


FEW = ["tflite_single", "fp32_rne"]
CASES = [("int32", "int8", rounding) for rounding in ROUNDINGS]
CASES += [(*pair, rounding) for rounding in FEW for pair in [("int8", "int16"), ("int16", "int8"), ("int64", "int16")]]


@pytest.mark.parametrize(("dtype", "result", "rounding"), CASES)
@given(shape=SHAPES, seed=SEED, threads=THREADS, per_channel=st.booleans())
def test_requantize(dtype, result, rounding, shape, seed, threads, per_channel) -> None:
    x = numbers(seed, dtype, shape)
    zero = int(x.reshape(-1)[0]) if dtype == "int8" else 0
    acc = x.astype(np.int64) - zero
    if rounding == "tflite_double":
        acc = np.clip(acc, -(2**31) + 1, 2**31 - 1)
        x = (acc + zero).astype(dtype)
    mantissa, shift, multiplier = parameters(seed, shape[1] if per_channel else 1, rounding)
    plain = seed % 3 > 0 and plainly(acc, shift, rounding)
    if dtype != "int32":
        plain = dtype != "int64" and is_plain_for(rounding, dtype)
        shift = plain_shift(shift, rounding) if plain else shift
    fields, wanted = requantized(acc, mantissa, shift, multiplier, rounding, result)
    out, _ = stored(result, (*shape[:2], shape[2] + seed % 3))
    m = [0, 1 if per_channel and shape[1] > 1 else 0, 0]
    walk = strided(shape, x=elements(x), m=m, y=[s // out.itemsize for s in out.strides])
    x = codes(x)
    launch(
        requantize_kernel(x.dtype.str[1:], out.dtype.str[1:], rounding, plain), threads, x=x, y=out, **walk,
        zero=zero + (128 if dtype == "int8" else 0), **fields,
    )  # fmt: skip
    np.testing.assert_array_equal(out[..., : shape[2]], codes(wanted))
    assert np.all(out[..., shape[2] :] == 77)


@pytest.mark.parametrize("rounding", [None, "pow2_half_even", *FEW])
@pytest.mark.parametrize("types", [("int8", "uint8", "int8"), ("int16", "int8", "int16")])
@given(shape=SHAPES, seed=SEED, threads=THREADS, broadcast=st.lists(st.booleans(), min_size=6, max_size=6))
def test_multiply(rounding, types, shape, seed, threads, broadcast) -> None:
    sizes = [tuple(1 if one else n for n, one in zip(shape, broadcast[i:], strict=False)) for i in (0, 3)]
    a, b = numbers(seed, types[0], sizes[0]), numbers(seed + 1, types[1], sizes[1])
    zeros = [int(numbers(seed + 2 + i, types[i], ())) for i in range(2)]
    acc = (a.astype(np.int64) - zeros[0]) * (b.astype(np.int64) - zeros[1])
    channels = acc.shape[1] if seed % 2 else 1
    plain = is_plain_for(rounding, types[0])
    if rounding is None:
        nothing = dict.fromkeys(("mantissa", "shift", "multiplier"), np.zeros(channels, np.int32))
        fields, wanted = {**nothing, "zero_point": 0, "low": 0, "high": 0}, acc
    else:
        mantissa, shift, multiplier = parameters(seed, channels, rounding)
        shift = plain_shift(shift, rounding) if plain else shift
        fields, wanted = requantized(acc, mantissa, shift, multiplier, rounding, types[2])
    out, _ = stored(wanted.dtype.name, wanted.shape)
    m = [0, 1 if channels > 1 else 0, 0]
    walk = strided(wanted.shape, a=elements(a), b=elements(b), m=m, y=[s // out.itemsize for s in out.strides])
    a, b = codes(a), codes(b)
    launch(
        multiply_kernel(a.dtype.str[1:], b.dtype.str[1:], out.dtype.str[1:], rounding, plain), threads, a=a, b=b, y=out,
        **walk, zero_a=zeros[0] + (128 if types[0] == "int8" else 0),
        zero_b=zeros[1] + (128 if types[1] == "int8" else 0), **fields,
    )  # fmt: skip
    np.testing.assert_array_equal(out, codes(wanted))
