"""Normalization of integers against Python's integers, and against the float ops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.errors import GraphError
from qbench.ir.dtypes import DType
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ops.integer.normalize import MOST, UNIT, Normalize
from qbench.ops.qnn.normalize import QnnLayerNorm, QnnRMSNorm
from qbench.quant.arithmetic import dequantize

DTYPES: st.SearchStrategy[DType] = st.sampled_from(["int8", "uint8", "int16", "uint16"])


def slowly(x: list[int], gamma: list[int], beta: list[int], centred: bool, epsilon: int) -> list[float]:
    """In integers as long as one likes, with a root of a hundred further bits."""
    count, total = len(x), sum(x) * centred
    squares = count * sum(number * number for number in x) - total * total + epsilon
    root = math.isqrt(max(squares, 1) << 200)
    numbers = [((count * number - total) << 100) * 2**30 // root for number in x]
    return [number / 2**30 / UNIT * g + b for number, g, b in zip(numbers, gamma, beta, strict=True)]


@given(
    st.integers(0, 2**32 - 1), DTYPES, st.sampled_from([1, 2, 7, 64, 384]), st.booleans(),
    st.sampled_from([0, 1, 10**6]), st.sampled_from(["spread", "still", "one"]),
)  # fmt: skip
def test_rows_are_exact(seed: int, dtype: DType, count: int, centred: bool, epsilon: int, kind: str):
    rng, info = np.random.default_rng(seed), np.iinfo(dtype)
    zero_point = 0 if centred else int(rng.integers(info.min, info.max + 1))
    x = rng.integers(info.min, info.max + 1, (3, count)).astype(dtype)
    if kind != "spread":  # all alike, or all but one
        x[:] = x[:, :1]
        x[:, 0] = info.max if kind == "one" else x[:, 0]
    gamma = rng.integers(-(2**15) + 1, 2**15, count).astype(np.int16)
    beta = rng.integers(-(2**30), 2**30, count).astype(np.int32)
    op = Normalize(centred=centred, zero_point=zero_point, epsilon=epsilon)
    (made,) = op.compute_all((x, gamma, beta))
    for row, found in zip(x.tolist(), made, strict=True):
        numbers = [number - zero_point for number in row]
        exact = slowly(numbers, gamma.tolist(), beta.tolist(), centred, epsilon)
        # half a step of the normalized number times gamma, half a step, and 30 bits of the root
        atol = np.abs(gamma) / 2.0**9 + 1 + np.abs(np.array(exact) - beta) * 2.0**-29
        assert (np.abs(found - np.array(exact)) <= atol).all()


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_the_longest_rows_stay_within_their_bits(dtype: DType):
    x = np.zeros((1, MOST), dtype)
    x[0, 0] = np.iinfo(dtype).max
    gamma, beta = np.full(MOST, 2**15 - 1, np.int16), np.full(MOST, 2**30, np.int32)
    (made,) = Normalize().compute_all((x, gamma, beta))
    exact = slowly(x[0].tolist(), gamma.tolist(), beta.tolist(), True, 0)
    assert np.abs(made[0] - np.array(exact)).max() <= 66
    with pytest.raises(GraphError, match="numbers in a row"):
        Normalize().infer(TensorType((1, MOST + 1), dtype), *(TensorType((MOST + 1,), t) for t in ("int16", "int32")))


@pytest.mark.parametrize("centred", [True, False])
def test_it_is_the_float_op_but_for_rounding(centred: bool):
    rng = np.random.default_rng(4)
    q, scale = QParams(0.02, 131, "uint8"), 3e-5
    x = rng.integers(100, 150, (5, 2, 48)).astype(np.uint8)
    gamma, beta = rng.integers(1, 30000, 48).astype(np.int16), rng.integers(-(2**20), 2**20, 48).astype(np.int32)
    made = QParams(scale * UNIT, 0, "int32")
    kind, operands = (QnnLayerNorm, (x, gamma, beta)) if centred else (QnnRMSNorm, (x, gamma))
    op = kind(qin=(q, QParams(scale, 0, "int16"), made)[: len(operands)], qout=(made,), epsilon=1e-3)
    found = dequantize(op.compute_all(operands)[0], made)
    real = dequantize(x, q).astype(np.float64)
    real = real - real.mean(axis=-1, keepdims=True) * centred
    wanted = real / np.sqrt((real**2).mean(axis=-1, keepdims=True) + 1e-3) * (gamma * scale)
    assert np.allclose(found, wanted + beta * made.scales[0] * centred, atol=3e-5)
