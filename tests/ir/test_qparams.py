"""Quantization parameters are plain, equal by value, and never nonsense."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from qbench.errors import QParamsError
from qbench.ir.dtypes import integer_range
from qbench.ir.qparams import QParams
from tests.strategies import INTEGERS, scales


@given(scales())
def test_scales_are_float32(scale: float) -> None:
    assert QParams(scale, 0, "int8").scale == np.float32(scale) == scale


def test_scales_are_rounded_to_float32() -> None:
    assert QParams(0.1, 0, "int8").scale == float(np.float32(0.1)) != 0.1
    assert QParams(0.1, 0, "int8") == QParams(float(np.float32(0.1)), 0, "int8")
    assert hash(QParams((0.1, 0.2), (0, 0), "int8", 1)) == hash(QParams((0.1, 0.2), (0, 0), "int8", 1))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_zero_points_lie_within_the_dtype(dtype: Any) -> None:
    low, high = integer_range(dtype)
    assert (QParams(1.0, low, dtype).qmin, QParams(1.0, high, dtype).qmax) == (low, high)
    for outside in (low - 1, high + 1):
        with pytest.raises(QParamsError, match=f"zero point {outside} is outside {dtype}"):
            QParams(1.0, outside, dtype)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, math.nan, 1e-60, 1e60])
def test_scales_are_positive_and_finite(scale: float) -> None:
    with pytest.raises(QParamsError, match="must be positive and finite"):
        QParams(scale, 0, "int8")
    with pytest.raises(QParamsError, match="at index 1 of axis 0 must be positive"):
        QParams((1.0, scale), (0, 0), "int8", 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1.0, 0, "float32"), "hold integers, not float32"),
        ((1.0, 0, "bool"), "hold integers, not bool"),
        ((1.0, 0, "int8", 0), "tuples exactly where an axis is given"),
        (((1.0,), (0,), "int8"), "tuples exactly where an axis is given"),
        (((1.0,), 0, "int8", 0), "tuples exactly where an axis is given"),
        (((1.0, 1.0), (0,), "int8", 0), "2 scales but 1 zero points"),
        (((1.0,), (0,), "int8", -1), "must be counted from the front"),
    ],
)
def test_shapes_that_do_not_fit(arguments: Any, message: str) -> None:
    with pytest.raises(QParamsError, match=message):
        QParams(*arguments)


def test_arrays_broadcast_against_the_tensor() -> None:
    per_axis = QParams((0.5, 0.25, 1.0), (1, 2, 3), "int8", 1)
    np.testing.assert_array_equal(per_axis.scale_array((2, 3, 2, 2)), np.float32([0.5, 0.25, 1.0]).reshape(1, 3, 1, 1))
    np.testing.assert_array_equal(per_axis.zero_point_array((2, 3)), np.int64([[1, 2, 3]]))
    assert QParams(0.5, 1, "int8").scale_array((2, 2, 2)).shape == (1, 1, 1)
    assert per_axis.scale_array((2, 3)).dtype == np.float32
    with pytest.raises(QParamsError, match="axis 1 is outside a tensor of rank 1"):
        per_axis.scale_array((3,))


def test_blocks_of_a_matrix_along_either_axis() -> None:
    rows = QParams((1.0, 2.0, 3.0, 4.0), (0, 1, 2, 3), "uint4", 0, 3)
    np.testing.assert_array_equal(rows.scale_array((2, 6)), np.float32([[1, 1, 1, 2, 2, 2], [3, 3, 3, 4, 4, 4]]))
    columns = QParams(rows.scale, rows.zero_point, "uint4", 1, 3)
    np.testing.assert_array_equal(columns.scale_array((6, 2)), rows.scale_array((2, 6)).T)
    np.testing.assert_array_equal(columns.zero_point_array((6, 2)), rows.zero_point_array((2, 6)).T)
    assert rows.fits((2, 6)) and columns.fits((6, 2)) and rows.fits((4, 3))
    assert not any(rows.fits(shape) for shape in ((2, 7), (6, 2), (2, 6, 1), ("N", 6), (3, 4)))
    with pytest.raises(QParamsError, match="4 scales for blocks of 3 do not suit"):
        rows.scale_array((2, 7))


@pytest.mark.parametrize("axis", [None, 2])
def test_blocks_need_an_axis_of_a_matrix(axis: int | None) -> None:
    scale, zero_point = (1.0, 0) if axis is None else ((1.0,), (0,))
    with pytest.raises(QParamsError, match="blocks of 2 go along an axis of a matrix"):
        QParams(scale, zero_point, "int8", axis, 2)
