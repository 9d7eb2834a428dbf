"""Constants written out so that rows are long: the same values, and no more memory than caches hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from qbench.kernels.walk import walks
from qbench.runtime.lowerings.operands import repeated, spread
from qbench.runtime.step import Place, row_major

MOST = 2**16  # bytes


@given(shape=st.lists(st.integers(1, 40), min_size=1, max_size=4), data=st.data())
def test_every_element_finds_its_value(shape: list[int], data: st.DataObject) -> None:
    sizes = tuple(size if data.draw(st.booleans()) else 1 for size in shape)
    array = np.random.default_rng(0).normal(size=sizes).astype(np.float32)
    result = Place.dense(0, np.dtype(np.float32), tuple(shape))
    made, strides = repeated(array, spread(sizes, row_major(sizes), result), result)
    assert made.flags.c_contiguous and made.nbytes <= max(MOST, array.nbytes)
    seen = as_strided(made, shape, [step * made.itemsize for step in strides], writeable=False)
    np.testing.assert_array_equal(seen, np.broadcast_to(array, shape))


@pytest.mark.parametrize(
    ("shape", "constant", "row"),
    [
        ((96, 96, 16), (1, 1, 16), 96 * 16),  # of a line of pixels
        ((6, 5, 4), (1, 1, 4), 6 * 5 * 4),  # of all
        ((96, 96, 256), (1, 1, 256), 256),  # long enough
        ((96, 3000, 16), (1, 1, 16), 16),  # a line would take too much memory
        ((4, 96, 16), (4, 1, 16), 4 * 96 * 16),  # another one for each line
    ],
)
def test_how_long_rows_become(shape: tuple[int, ...], constant: tuple[int, ...], row: int) -> None:
    result = Place.dense(0, np.dtype(np.float32), shape)
    made, strides = repeated(np.ones(constant, np.float32), spread(constant, row_major(constant), result), result)
    assert walks(shape, x=strides, y=result.strides)[0][1]["n3"] == row
    assert made.nbytes <= MOST
