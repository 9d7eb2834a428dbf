"""The one place where the memory of programs comes from: arenas, constants, inputs, results, tables.

``QBENCH_GUARD=1`` in the environment (Linux) puts each of them between pages that cannot be touched, see
:mod:`qbench.runtime.guard`: nothing is used twice then, and inputs and constants are copied there. It is for tests:
``python -m tests guard`` runs a few examples of each property, ``QBENCH_GUARD=1 python -m pytest`` whatever is named.
"""

import ctypes
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from qbench.ir.op import Array
from qbench.kernels.run_table import LINE
from qbench.runtime.guard import PAGE, guarded

GUARDED = os.environ.get("QBENCH_GUARD") == "1"
"""Whether memory errors end the process."""

SLACK = 128
"""Bytes behind each buffer that are readable: vector loads may read on there. They never write there."""

_ALIGNMENT = 16  # of NumPy's arrays


def aligned(size: int, gaps: Sequence[tuple[int, int]] = ()) -> NDArray[np.uint8]:
    """So many bytes from a multiple of LINE on; their content means nothing.

    Parameters
    ----------
    size
        Bytes.
    gaps
        See :func:`~qbench.runtime.guard.guarded`.
    """
    if GUARDED:
        return guarded(size, SLACK, LINE, gaps)
    memory = np.zeros(size + SLACK + LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + size]


def address(array: Array) -> int:
    """Where a contiguous array lies; :attr:`numpy.ndarray.ctypes` says it too, and takes four times as long."""
    if array.flags.writeable and array.nbytes and array.dtype.isbuiltin == 1:
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))
    return array.ctypes.data


def empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array that a run writes."""
    dtype, size = np.dtype(dtype), math.prod(shape)
    if GUARDED:
        return guarded(size * dtype.itemsize, SLACK, dtype.alignment).view(dtype).reshape(shape)
    array = np.empty(shape, dtype)
    return array if _readable_behind(array) else aligned(array.nbytes).view(dtype).reshape(shape)


def zeros(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """An array of zeros that a run writes."""
    array = empty(shape, dtype)
    array[...] = 0
    return array


def held(array: Array) -> Array:
    """A contiguous array that runs read, as long as it lives: itself, or a copy where it must be."""
    if not GUARDED and _readable_behind(array):
        return array
    copy = guarded(array.nbytes, SLACK, _ALIGNMENT) if GUARDED else aligned(array.nbytes)
    copy[...] = array.reshape(-1).view(np.uint8)
    return copy.view(array.dtype).reshape(array.shape)


def _readable_behind(array: Array) -> bool:
    """Whether its last page holds SLACK more bytes: whoever has them, reading them is no fault."""
    return -(address(array) + array.nbytes) % PAGE >= SLACK
