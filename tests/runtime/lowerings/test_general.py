"""Convolutions and dense layers of wide integers as programs, against the interpreter."""

from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.quant.rounding import ROUNDINGS
from tests.runtime.lowerings.graphs import check, graph_of, numbers, requantize

SEED = st.integers(0, 2**31)
MODES = [None, *ROUNDINGS[1:]]
SMALL = {"int4": ml_dtypes.int4}


def kinds(*dtypes: str) -> st.SearchStrategy[tuple]:
    """Types of data and of weights, each pair with one rounding."""
    pairs = product(dtypes, ("int8", "uint8", "int16", "int4"))
    return st.sampled_from([(*pair, MODES[i % len(MODES)]) for i, pair in enumerate(pairs)])


def weights(seed: int, dtype: str, shape) -> np.ndarray:
    if dtype in SMALL:
        return np.random.default_rng(seed).integers(-8, 8, shape).astype(SMALL[dtype])
    return numbers(seed, dtype, shape)


def layer(head, inputs, shape, weight, seed, rounding, dtype, rank):
    """A product, its bias and its requantize."""
    bias = np.random.default_rng(seed).integers(-(2**20), 2**20, len(weight)).astype(np.int64)
    axis = 1 if rank == 4 else rank - 1
    result_shape = [len(weight) if i == axis else 1 for i in range(rank)]
    nodes, constants = requantize("biased", "narrow", rounding, dtype, seed, result_shape, axis)
    add = ("nn.bias_add", "sums b", "biased", {"axis": axis})
    return graph_of(inputs, head, add, *nodes, constants={"w": weight, "b": bias, **constants})


@settings(max_examples=60)
@given(
    kind=kinds("int16", "uint8"), seed=SEED,
    sizes=st.sampled_from([(1, 3, 5), (2, 2, 3), (6, 1, 1)]), kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    strides=st.tuples(st.integers(1, 2), st.integers(1, 2)), batch=st.sampled_from([1, 2, "N"]),
)  # fmt: skip
def test_conv2d(kind, seed, sizes, kernel, strides, batch) -> None:
    dtype, weight, rounding = kind
    groups, depth, units = sizes
    w = weights(seed, weight, (groups * units, depth, *kernel))
    zero = 0 if weight == "int4" else int(numbers(seed, weight, ()))
    attrs = {
        "strides": strides, "padding": (1, 0, 2, 1), "groups": groups, "data_zero_point": int(numbers(seed, dtype, ())),
        "weight_zero_point": zero, "accumulator": "int64",
    }  # fmt: skip
    inputs = {"x": (dtype, (batch, groups * depth, 7, 6))}
    head = ("integer.conv2d", "x w", "sums", attrs)
    check(layer(head, inputs, None, w, seed, rounding, dtype, 4), seed)


@settings(max_examples=40)
@given(
    kind=kinds("int16", "int8"), seed=SEED,
    shape=st.sampled_from([(1, 30), ("N", 20), (2, 3, 9), (2, 1500)]),
)  # fmt: skip
def test_dense(kind, seed, shape) -> None:
    dtype, weight, rounding = kind
    w = weights(seed, weight, (70, shape[-1]))
    zeros = tuple(numbers(seed, "int8", (70,)).tolist())
    attrs = {"data_zero_point": int(numbers(seed, dtype, ())), "weight_zero_point": zeros, "accumulator": "int64"}
    head = ("integer.dense", "x w", "sums", attrs)
    check(layer(head, {"x": (dtype, shape)}, None, w, seed, rounding, dtype, len(shape)), seed)
