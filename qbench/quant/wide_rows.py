"""Rows of real numbers rounded to 24 bits, each by its own range: as many as float32 has."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 2**23 - 4
"""What the largest magnitude of a row becomes: with room for what the factor's own rounding adds."""

SMALLEST_RANGE = 2.0**-100
"""A row whose numbers are all smaller counts as zeros: nothing could be divided by its range."""


def wide_rows(data: NDArray[np.float32]) -> NDArray[np.float32]:
    """The numbers that the integers of each row, along the last axis, stand for."""
    largest = np.abs(data).max(axis=-1, keepdims=True, initial=0)
    usual = largest >= np.float32(SMALLEST_RANGE)
    factor = np.where(usual, np.float32(LARGEST) / np.where(usual, largest, np.float32(1)), np.float32(0))
    integers: NDArray[Any] = np.rint(data * factor)
    return integers * (largest / np.float32(LARGEST))
