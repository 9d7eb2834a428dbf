"""Rows rounded to 24 bits by their own range."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from qbench.quant.wide_rows import LARGEST, SMALLEST_RANGE, wide_rows

REALS = st.floats(-(2.0**100), 2.0**100, width=32)


@given(arrays(np.float32, st.tuples(st.integers(1, 4), st.integers(1, 9)), elements=REALS))
def test_no_element_is_further_off_than_half_a_step_of_its_row(data: np.ndarray) -> None:
    found, largest = wide_rows(data).astype(np.float64), np.abs(data).max(axis=1, keepdims=True).astype(np.float64)
    wanted = np.where(largest < SMALLEST_RANGE, 0, data)
    assert np.all(np.abs(found - wanted) <= largest * (0.5 / LARGEST + 2.0**-23))


def test_each_row_has_a_range_of_its_own() -> None:
    rows = np.array([[1e-9, 3e-10], [1e9, 3e8], [0, 0]], np.float32)
    np.testing.assert_allclose(wide_rows(rows), rows, rtol=1e-6)


@given(arrays(np.float32, 9, elements=REALS))
def test_the_integers_have_24_bits(data: np.ndarray) -> None:
    largest = np.abs(data).max()
    factor = np.float32(LARGEST) / largest if largest >= SMALLEST_RANGE else np.float32(0)
    assert np.abs(np.rint(data * factor)).max() < 2**23
