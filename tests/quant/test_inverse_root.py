"""Inverse roots against integers as long as one likes."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from qbench.quant.inverse_root import NORMAL_BITS, inverse_root


@given(st.lists(st.one_of(st.integers(0, 2**62 - 1), st.integers(0, 31).map(lambda n: 4**n - (n > 0))), min_size=1))
def test_inverse_roots_are_exact_to_thirty_bits(squares: list[int]):
    mantissas, shifts = inverse_root(np.array(squares, np.int64))
    for square, mantissa, shift in zip(squares, mantissas.tolist(), shifts.tolist(), strict=True):
        assert 2**30 <= mantissa <= 2**31
        assert 15 <= shift <= 61 - NORMAL_BITS
        wanted = math.isqrt((1 << 160) // max(square, 1))  # 2^80 over the root
        assert abs((mantissa << (80 - (shift + NORMAL_BITS))) - wanted) <= wanted >> 29
