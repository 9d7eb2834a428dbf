"""Normalization of rows against double precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qbench.kernels.floats.norm import norm_kernel
from qbench.kernels.levels import Level
from tests.kernels.harness import launch

EPSILON = 1e-5


@pytest.mark.parametrize("level", [Level.PORTABLE, Level.AVX2])
@pytest.mark.parametrize(("dtype", "near"), [("float32", 2e-6), ("float16", 2e-3)])
@pytest.mark.parametrize("centred", [True, False])
@settings(max_examples=25)
@given(rows=st.integers(1, 4), columns=st.integers(1, 70), gap=st.integers(0, 3), threads=st.integers(1, 3))
def test_rows_of_any_length(centred, dtype, near, level, rows, columns, gap, threads) -> None:
    rng = np.random.default_rng(columns)
    x = (rng.normal(size=(rows, columns + gap)) + 3).astype(dtype)
    gamma, beta = rng.normal(size=(2, columns)).astype(np.float32)
    y = np.full((rows, columns), np.nan, dtype)
    launch(
        norm_kernel(centred, dtype, level), threads, x=x, y=y, gamma=gamma, beta=beta, rows=rows, columns=columns,
        x_row=columns + gap, y_row=columns, epsilon=EPSILON,
    )  # fmt: skip
    given_rows = x[:, :columns].astype(np.float64)
    mean = given_rows.mean(axis=1, keepdims=True).astype(np.float32) if centred else 0
    away = given_rows - mean
    normal = away / np.sqrt(np.square(away).mean(axis=1, keepdims=True) + EPSILON) * gamma
    expected = normal + beta if centred else normal
    np.testing.assert_allclose(y.astype(np.float64), expected, rtol=near, atol=4 * near)
