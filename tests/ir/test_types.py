"""Element types and tensor types."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qbench.errors import GraphError
from qbench.ir.dtypes import DTYPES, dtype_of, integer_range, is_float, is_integer, numpy_dtype
from qbench.ir.types import TensorType, dim_factors, dim_product, dim_sum, dims_replaced, numel


@pytest.mark.parametrize("name", DTYPES)
def test_numpy_knows_every_dtype(name: Any) -> None:
    assert dtype_of(numpy_dtype(name)) == name
    assert numpy_dtype(name).name == name
    assert not (is_float(name) and is_integer(name))


@pytest.mark.parametrize("name", ["float64", "uint32", "complex64", "U3", "object"])
def test_other_numpy_dtypes_are_refused(name: str) -> None:
    with pytest.raises(GraphError, match="is not an element type of the IR"):
        dtype_of(np.dtype(name))


@pytest.mark.parametrize("name", [name for name in DTYPES if is_integer(name)])
def test_integer_ranges_are_numpys(name: Any) -> None:
    info = ml_dtypes.iinfo(numpy_dtype(name))
    assert integer_range(name) == (info.min, info.max)


def test_floats_have_no_integer_range() -> None:
    with pytest.raises(GraphError, match="float16 is not an integer type"):
        integer_range("float16")


@pytest.mark.parametrize(
    ("dim", "factors"),
    [(0, (0, None)), (7, (7, None)), ("N", (1, "N")), ("4*N", (4, "N")), ("12*batch_1", (12, "batch_1"))],
)
def test_sizes_split_into_number_and_symbol(dim: Any, factors: Any) -> None:
    assert dim_factors(dim) == factors


@pytest.mark.parametrize("dim", [-1, True, 1.0, None, "", "-4", "4*", "N M", "(N", "N)", "N//0", "4*N;", "Ä", (1,)])
def test_other_sizes_are_refused(dim: Any) -> None:
    with pytest.raises(GraphError, match=r"is neither a size nor an expression|is negative"):
        TensorType((2, dim), "int8")


@given(st.lists(st.integers(0, 9), max_size=4), st.none() | st.integers(1, 9))
def test_products(sizes: list[int], factor: int | None) -> None:
    product = int(np.prod(sizes, dtype=int))
    assert dim_product(tuple(sizes)) == product
    assert numel(tuple(sizes)) == product
    if factor is not None:
        total = product * factor
        symbolic = (*sizes, f"{factor}*N" if factor > 1 else "N")
        assert dim_factors(dim_product(symbolic)) == ((total, "N") if total else (0, None))


def test_shapes_are_canonical() -> None:
    assert TensorType(("N*4", "04*M", "(H-1)//2 + 1", "2*3", "0*N"), "int8").shape == ("4*N", "4*M", "(H + 1)//2", 6, 0)


def test_sums_and_products_of_open_sizes() -> None:
    assert dim_product(("N", "M", 2)) == "2*M*N"
    assert dim_sum(("P", "S", 1)) == "P + S + 1"
    assert dim_factors("2*H + 4") == (2, "H + 2")
    assert dims_replaced(("P + S", "P", 3), {"P": 4, "S": "T"}) == ("T + 4", 4, 3)
    assert numel(("N", "(H - 8)//2", 5)) == 5


def test_overflow_and_unknown_dtypes_are_refused() -> None:
    assert TensorType((2**20, 2**20), "int8").rank == 2
    with pytest.raises(GraphError, match=r"more than 2\^40 elements"):
        TensorType((2**20, 2**20, 2), "int8")
    with pytest.raises(GraphError, match="unknown dtype 'float64'"):
        TensorType((1,), "float64")  # pyright: ignore[reportArgumentType]


def test_text() -> None:
    assert str(TensorType(("N", 4), "int8")) == "Tensor[(N, 4), int8]"
    assert str(TensorType((4,), "int8")) == "Tensor[(4,), int8]"
    assert str(TensorType((), "int8")) == "Tensor[(), int8]"
    assert TensorType((4,), "int8").with_dtype("bool") == TensorType((4,), "bool")
