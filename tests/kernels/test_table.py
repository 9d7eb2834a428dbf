"""Table look-up against integer.table."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.kernels.table import table_kernel
from qbench.ops.integer.table import IntegerTable
from tests.kernels.harness import RUNNABLE, codes, launch, padded


@pytest.mark.parametrize("level", RUNNABLE)
@pytest.mark.parametrize(
    ("dtype", "result"),
    [
        ("int8", "int8"),
        ("uint8", "int8"),
        ("uint8", "int16"),
        ("int8", "float32"),
        ("int16", "int16"),
        ("int16", "int8"),
    ],
)
@given(
    seed=st.integers(0, 2**32), outer=st.integers(0, 5), channels=st.sampled_from([1, 1, 2, 5]),
    inner=st.integers(1, 200), gap=st.integers(0, 3), threads=st.integers(1, 3),
)  # fmt: skip
def test_look_up(level, dtype, result, seed, outer, channels, inner, gap, threads) -> None:
    random = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    x = random.integers(info.min, info.max, (outer, channels, inner), dtype, endpoint=True)
    table = random.integers(-(2**7), 2**7, (channels, 2 ** (8 * info.dtype.itemsize))).astype(result)
    source = np.zeros((outer, channels * inner + gap), codes(x).dtype)
    source[:, : channels * inner] = codes(x).reshape(outer, channels * inner)
    stored = codes(table)
    out = np.full(outer * (channels * inner + gap), 99, stored.dtype)
    launch(
        table_kernel(level, source.dtype.str[1:], stored.itemsize), threads, x=padded(source), out=out, table=stored,
        outer=outer, channels=channels, inner=inner, x_pitch=source.shape[1], out_pitch=channels * inner + gap,
    )  # fmt: skip
    wanted = codes(IntegerTable(axis=1).compute(x, table))
    out = out.reshape(outer, -1) if outer else out.reshape(0, channels * inner + gap)
    np.testing.assert_array_equal(out[:, : channels * inner], wanted.reshape(outer, channels * inner))
    assert np.all(out[:, channels * inner :] == 99)
