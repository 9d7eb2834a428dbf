"""Kernels that are called with arrays read one element type, whatever type the arrays are of."""

from __future__ import annotations

import numpy as np

from qbench.calibration.patches import Patches
from qbench.kernels.deviation import sums_of_squares
from qbench.kernels.grid_error import squared_errors

X = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float16)
"""Numbers that all types of floats hold exactly."""


def test_of_reals_and_their_scales() -> None:
    codes, scales, zeros = np.arange(60, dtype=np.int8).reshape(3, 4, 5), np.array([0.5, 1, 2, 4]), np.arange(4)
    found = [
        sums_of_squares(X.astype(kind), codes, scales.astype(kind), zeros.astype(index), -1, 1)
        for kind, index in ((np.float16, np.int8), (np.float32, np.int64), (np.float64, np.int32))
    ]
    assert found[0] == found[1] == found[2]


def test_of_rows() -> None:
    rows, grids = X.reshape(12, 5), np.full((12, 2), 0.25)
    found = [squared_errors(rows.astype(kind), grids, -8 * grids, 8 * grids) for kind in ("f2", "f4", "f8")]
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[1], found[2])


def test_of_images() -> None:
    corners, made = np.array([[0, 0], [1, 2]]), list[np.ndarray]()
    for kind in (np.float16, np.float32, np.float64):
        patches = Patches(X[None].astype(kind), corners, 2.0**-12)
        rows, sums = np.zeros((1, 2, 3)), np.zeros((1, 3))
        patches.put(0, rows, sums)
        made.append(rows)
    assert np.array_equal(made[0], made[1]) and np.array_equal(made[1], made[2]) and made[0].any()
