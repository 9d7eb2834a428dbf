"""Codes become integers of 16 bits, wherever they lie and whatever the thread that does them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qbench.kernels.walk import row_major, strided
from qbench.kernels.widen import widen_kernel
from tests.kernels.harness import launch

SIZES = st.tuples(st.integers(1, 3), st.integers(1, 5), st.integers(1, 7), st.integers(2, 80))


@given(shape=SIZES, gaps=st.tuples(*[st.integers(0, 3)] * 3), threads=st.integers(1, 3), seed=st.integers(0, 99))
def test_widened_codes_are_numpys(shape, gaps, threads, seed):
    n, h, w, c = shape
    whole = np.random.default_rng(seed).integers(0, 256, (n, h + gaps[0], w + gaps[1], c + gaps[2])).astype(np.uint8)
    x, y = whole[:, :h, :w, :c], np.full((n, h, w, c), -1, np.int16)
    walk = strided(shape, x=x.strides, y=row_major(shape))
    launch(widen_kernel(), threads, x=whole, y=y, **walk)
    np.testing.assert_array_equal(y, x)
