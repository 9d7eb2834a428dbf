"""The immutable containers of graphs."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.errors import GraphError
from qbench.ir.frozen import Constant, FrozenMap
from tests.strategies import constants


@given(st.dictionaries(st.text(), st.integers()))
def test_a_frozen_map_is_a_dict(items: dict[str, int]) -> None:
    frozen = FrozenMap(items)
    assert frozen == items == dict(frozen)
    assert list(frozen) == list(items)
    assert hash(frozen) == hash(FrozenMap(dict(reversed(items.items()))))
    assert copy.deepcopy(frozen) == frozen
    items["new"] = 1
    assert len(frozen) == len(items) - ("new" not in frozen)


def test_a_frozen_map_cannot_change() -> None:
    with pytest.raises(TypeError):
        FrozenMap({"a": 1})["a"] = 2  # pyright: ignore[reportIndexIssue]
    assert repr(FrozenMap({"a": 1})) == "FrozenMap({'a': 1})"


@given(constants())
def test_a_constant_equals_its_copy(constant: Constant) -> None:
    again = Constant(constant.array.copy())
    assert again == constant
    assert hash(again) == hash(constant)
    assert again.digest == constant.digest
    assert constant.dtype in repr(constant)


def test_a_constant_differs_by_dtype_shape_and_bits() -> None:
    zero = Constant(np.zeros(4, np.int8))
    others = [np.zeros(4, np.uint8), np.zeros((2, 2), np.int8), np.ones(4, np.int8), np.zeros(1, np.int32)]
    assert all(Constant(other) != zero for other in others)
    assert Constant(np.float32([0.0])) != Constant(np.float32([-0.0]))
    assert Constant(np.float32([np.nan])) == Constant(np.float32([np.nan]))
    assert zero != 0


def test_a_constant_is_read_only_and_its_own() -> None:
    array = np.zeros((2, 3), np.float32)
    constant = Constant(array)
    array[:] = 1
    assert not constant.array.any()
    with pytest.raises(ValueError, match="read-only"):
        constant.array[0, 0] = 1
    assert Constant(array.T).array.flags.c_contiguous
    assert Constant(constant.array).array is constant.array


def test_a_constant_of_another_dtype_is_refused() -> None:
    with pytest.raises(GraphError, match="float64 is not an element type"):
        Constant(np.zeros(1))


def test_a_scalar_of_numpy_becomes_an_array() -> None:
    constant = Constant(np.float32(3) * np.ones((), np.float32))  # pyright: ignore[reportArgumentType] what NumPy makes
    assert type(constant.array) is np.ndarray
    assert constant.shape == ()
