"""What kernels may read behind an array is there, whoever made the array."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from qbench.kernels.run_table import LINE
from qbench.runtime.guard import PAGE
from qbench.runtime.memory import GUARDED, SLACK, address, aligned, empty, held, zeros


def ending(far: int, size: int = 100) -> np.ndarray:
    """An array that ends so many bytes before the end of a page."""
    memory = np.arange(3 * PAGE) % 251
    memory = memory.astype(np.uint8)
    last = -memory.ctypes.data % PAGE + 2 * PAGE - far
    return memory[last - size : last]


@pytest.mark.parametrize("far", [0, 1, SLACK - 1])
def test_an_array_with_too_little_behind_it_is_copied(far: int) -> None:
    array = ending(far)
    copy = held(array)
    assert not np.shares_memory(copy, array)
    np.testing.assert_array_equal(copy, array)


@pytest.mark.skipif(GUARDED, reason="guarded memory holds copies of everything")
@pytest.mark.parametrize("far", [SLACK, SLACK + 1, PAGE - 100, PAGE - 1])
def test_other_arrays_are_used_where_they_lie(far: int) -> None:
    array = ending(far)
    assert held(array) is array


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (5,), (7, 3), (PAGE - 16,), (3, PAGE)])
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32"])
def test_new_arrays(shape: tuple[int, ...], dtype: str) -> None:
    for array in (empty(shape, dtype), zeros(shape, dtype)):
        assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.ctypes.data % array.itemsize == 0
    assert not array.any()
    block = aligned(array.nbytes)
    assert not block.size or block.ctypes.data % LINE == 0
    assert block.size == array.nbytes


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (7, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.bool_, np.float16, np.float32, ml_dtypes.bfloat16, ml_dtypes.int4])
def test_addresses(shape: tuple[int, ...], dtype: type) -> None:
    array = np.zeros(shape, dtype)
    assert address(array) == array.ctypes.data
    array.flags.writeable = False
    assert address(array) == array.ctypes.data
