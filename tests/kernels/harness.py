"""Launches one kernel on arrays."""

from __future__ import annotations

import numpy as np

from qbench.kernels.kernel import Kernel
from qbench.kernels.levels import Level, supported
from qbench.runtime.guard import guarded
from qbench.runtime.memory import GUARDED, SLACK

ALIGNMENT = 16  # of NumPy's arrays

VECTORS = [level for level in Level if level.vectors is level]
COMPILED = [level for level in VECTORS if level in supported()]
"""Levels of this machine."""
RUNNABLE = [level for level in VECTORS if level in COMPILED or (level is Level.AVXVNNI and VECTORS[0] in COMPILED)]
"""The same: AVX-VNNI has the instructions of 256 bits that AVX512-VNNI has too, in another encoding."""
WITH_MATRICES = [*RUNNABLE, *(level for level in supported() if level.vectors is not level)]
"""The same and what adds products of matrices to one of them: what has no kernels for these has those of vectors."""


def launch(kernel: Kernel, threads: int = 1, **fields: object) -> None:
    """Run every thread's share, one after the other; arrays among the fields become their addresses."""
    assert set(fields) == set(kernel.arguments.names), set(fields) ^ set(kernel.arguments.names)
    arguments, bases = np.recarray(1, kernel.arguments), np.zeros(1, np.int64)
    lent = Lent()
    for name, value in fields.items():
        arguments[0][name] = lent.address(value) if isinstance(value, np.ndarray) else value
    for thread in range(threads):
        kernel.launch(arguments, bases, thread, threads)
    lent.take_back()


class Lent:
    """Where kernels find arrays: where they lie, or in guarded copies of the whole memory that they are views of."""

    def __init__(self) -> None:
        self._copies: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def address(self, array: np.ndarray) -> int:
        owner = array
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if not GUARDED or owner.base is not None:  # guarded already
            return array.ctypes.data
        assert owner.flags.forc
        if id(owner) not in self._copies:
            here = owner.ravel(order="K").view(np.uint8)
            copy = guarded(here.size, 0, ALIGNMENT)
            copy[:] = here
            self._copies[id(owner)] = here, copy
        return self._copies[id(owner)][1].ctypes.data + array.ctypes.data - owner.ctypes.data

    def take_back(self) -> None:
        for here, copy in self._copies.values():
            if here.flags.writeable:
                here[:] = copy
            np.testing.assert_array_equal(here, copy)


def codes(values: np.ndarray) -> np.ndarray:
    """Values as kernels hold them: 8-bit ones as their distance from the smallest, others as they are."""
    return (values.astype(np.int16) + 128).astype(np.uint8) if values.dtype == np.int8 else values


def stored(dtype: str, shape: tuple[int, ...]) -> tuple[np.ndarray, int]:
    """An array that can hold codes of the type, filled with a mark, and what is added to a value to get its code."""
    signed = np.dtype(dtype) == np.int8
    return np.full(shape, 77, np.uint8 if signed else dtype), 128 if signed else 0


def padded(array: np.ndarray) -> np.ndarray:
    """A copy of an array, with the readable bytes behind it that buffers have."""
    memory = guarded(array.nbytes, SLACK, ALIGNMENT) if GUARDED else np.full(array.nbytes + SLACK, 77, np.uint8)
    memory[: array.nbytes] = array.reshape(-1).view(np.uint8)
    return memory[: array.nbytes].view(array.dtype).reshape(array.shape)
