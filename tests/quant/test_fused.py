"""Fused multiply-add against exact rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from qbench.quant.fused import fused_multiply_add

reals = st.floats(-(2.0**60), 2.0**60, width=32, allow_subnormal=False)


def nearest(exact: Fraction) -> np.float32:
    """The float32 number nearest to a fraction, the even one of two equally near."""
    guess = np.float32(float(exact))
    near = [np.nextafter(guess, np.float32(side)) for side in (-np.inf, np.inf)] + [guess]
    return min(near, key=lambda number: (abs(Fraction(float(number)) - exact), int(number.view(np.int32)) & 1))


@given(reals, reals, reals)
@example(1 + 2.0**-12, 1 + 2.0**-12, 2.0**-60)  # a tie in float32 that only the last addend breaks
@example(1 + 2.0**-12, -1 - 2.0**-12, -(2.0**-60))
@example(3.0, 5.0, -15.0)
def test_it_is_rounded_once(a: float, b: float, c: float) -> None:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    got = fused_multiply_add(a, b, c)
    assert got.dtype == np.float32
    if abs(exact) > Fraction(1, 2**100) and abs(exact) < Fraction(2) ** 127:
        assert got[()] == nearest(exact)
    elif exact == 0:
        assert got[()] == 0


def test_operands_broadcast() -> None:
    x, y = np.arange(3, dtype=np.float32)[:, None], np.arange(4, dtype=np.float32)
    np.testing.assert_array_equal(fused_multiply_add(x, y, np.float32(0.5)), x * y + 0.5)
