"""Tensor types: a shape of ints and symbols, and an element type."""

from __future__ import annotations

import re
from dataclasses import dataclass

from qbench.errors import GraphError
from qbench.ir.dtypes import DType, is_dtype

__all__ = ["Dim", "TensorType", "dim_factors", "dim_product", "numel"]

Dim = int | str
"""A size: an int, a symbol such as ``N``, or a multiple of one such as ``4*N``."""

_SYMBOL = re.compile(r"(?:([1-9][0-9]*)\*)?([A-Za-z_][A-Za-z0-9_]*)")
_MAX_ELEMENTS = 2**40


@dataclass(frozen=True, slots=True)
class TensorType:
    """What a value is: shape (ints, or symbols for sizes known only at run time) and element type.

    Raises
    ------
    GraphError
        A negative or overflowing size, a malformed symbol, or an unknown dtype.
    """

    shape: tuple[Dim, ...]
    dtype: DType

    def __post_init__(self) -> None:
        if not is_dtype(self.dtype):
            raise GraphError(f"unknown dtype {self.dtype!r}")
        for dim in self.shape:
            dim_factors(dim)
        if numel(self.shape) > _MAX_ELEMENTS:
            raise GraphError(f"a tensor of shape {self.shape} has more than 2^40 elements")

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def with_dtype(self, dtype: DType) -> TensorType:
        """The same shape with another element type."""
        return TensorType(self.shape, dtype)

    def __str__(self) -> str:
        dims = ", ".join(map(str, self.shape)) + ("," if len(self.shape) == 1 else "")
        return f"Tensor[({dims}), {self.dtype}]"


def dim_factors(dim: Dim) -> tuple[int, str | None]:
    """Split a size into its number and its symbol: ``4*N`` is (4, "N"), 7 is (7, None)."""
    if isinstance(dim, int) and not isinstance(dim, bool):  # bool is an int to Python, but not a size
        if dim < 0:
            raise GraphError(f"size {dim} is negative")
        return dim, None
    match = _SYMBOL.fullmatch(dim) if isinstance(dim, str) else None
    if match is None:
        raise GraphError(f"{dim!r} is neither a size nor a symbol like N or 4*N")
    return int(match[1] or 1), match[2]


def dim_product(dims: tuple[Dim, ...]) -> Dim:
    """The product of sizes, at most one of them symbolic; GraphError where two are."""
    number, symbol = 1, None
    for factor, name in map(dim_factors, dims):
        number *= factor
        if name is not None and symbol is not None:
            raise GraphError(f"the product of {dims} has two unknown sizes")
        symbol = symbol or name
    if symbol is None or number == 0:
        return number
    return symbol if number == 1 else f"{number}*{symbol}"


def numel(dims: tuple[Dim, ...]) -> int:
    """Number of elements, symbols counted as 1."""
    count = 1
    for dim in dims:
        count *= dim_factors(dim)[0]
    return count
