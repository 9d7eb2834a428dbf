"""Tensor types: a shape of ints and symbols, and an element type."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from qbench.errors import GraphError
from qbench.ir.dtypes import DType, is_dtype, numpy_dtype
from qbench.ir.sizes import size_of

Dim = int | str
"""A size: an int, or an expression of symbols such as ``N``, ``4*N``, ``P + S`` or ``(H + 1)//2``; see
:mod:`qbench.ir.sizes`.

An attribute of an op whose type mentions it may be open, too.
"""

_MAX_ELEMENTS = 2**40


@dataclass(frozen=True, slots=True)
class TensorType:
    """What a value is: shape (ints, or expressions for sizes known only at run time) and element type.

    Raises
    ------
    GraphError
        A negative or overflowing size, a malformed expression, or an unknown dtype.
    """

    shape: tuple[Dim, ...]
    dtype: DType

    def __post_init__(self) -> None:
        if not is_dtype(self.dtype):
            raise GraphError(f"unknown dtype {self.dtype!r}")
        shape = tuple([dim if type(dim) is int and dim >= 0 else _canonical(dim) for dim in self.shape])
        object.__setattr__(self, "shape", shape)
        if numel(self.shape) > _MAX_ELEMENTS:
            raise GraphError(f"a tensor of shape {self.shape} has more than 2^40 elements")

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of a value; open sizes count as 1, see :func:`qbench.ir.specialize.sized`."""
        return numel(self.shape) * numpy_dtype(self.dtype).itemsize

    def with_dtype(self, dtype: DType) -> TensorType:
        """The same shape with another element type."""
        return TensorType(self.shape, dtype)

    def __str__(self) -> str:
        dims = ", ".join(map(str, self.shape)) + ("," if len(self.shape) == 1 else "")
        return f"Tensor[({dims}), {self.dtype}]"


@lru_cache(maxsize=4096, typed=True)
def dim_factors(dim: Dim) -> tuple[int, str | None]:
    """Split a size into its number and what is open: ``4*N`` is (4, "N"), ``2*H + 2`` (2, "H + 1"), 7 is (7, None)."""
    size = size_of(dim)
    number = size.number
    if number is not None:
        if number < 0:
            raise GraphError(f"size {dim} is negative")
        return int(number), None
    common = math.gcd(*(int(factor) for _, factor in size.terms))
    return common, str((size / common).dim)


def dim_product(dims: Iterable[Dim]) -> Dim:
    """The product of sizes."""
    return math.prod(map(size_of, dims), start=size_of(1)).dim


def dim_sum(dims: Iterable[Dim]) -> Dim:
    """The sum of sizes."""
    return sum(map(size_of, dims), start=size_of(0)).dim


def dims_replaced(dims: Iterable[Dim], sizes: Mapping[str, Dim]) -> tuple[Dim, ...]:
    """Sizes with others in place of symbols."""
    return tuple(dim if isinstance(dim, int) else size_of(dim).replaced(sizes).dim for dim in dims)


def numbers(dims: Iterable[Dim]) -> tuple[int, ...]:
    """Sizes that must be known; GraphError where one is open."""
    found = tuple(dims)
    known = tuple(dim for dim in found if isinstance(dim, int))
    if len(known) < len(found):
        raise GraphError(f"the sizes {', '.join(map(str, found))} must be numbers here")
    return known


def numel(dims: Iterable[Dim]) -> int:
    """Number of elements, symbols counted as 1."""
    return math.prod(dim if isinstance(dim, int) else _smallest(dim) for dim in dims)


@lru_cache(maxsize=4096)
def _smallest(dim: str) -> int:
    size = size_of(dim)
    return max(int(size.replaced(dict.fromkeys(size.symbols, 1)).dim), 1)


def _canonical(dim: Dim) -> Dim:
    size = size_of(dim)
    if size.number is not None and size.number < 0:
        raise GraphError(f"size {dim} is negative")
    return size.dim
