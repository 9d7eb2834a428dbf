"""Arithmetic over sizes that are known only at run time, for the chains of Shape, Gather, Mul... that exporters write.

A chain is evaluated on NumPy object arrays that hold ints, floats, bools and :class:`Size`.
"""

from __future__ import annotations

from dataclasses import dataclass

from qbench.ir.types import Dim, dim_factors, dim_product

__all__ = ["Size", "Unresolved", "dim_of", "element_of"]


class Unresolved(Exception):
    """The value depends on a size that is known only at run time."""


@dataclass(frozen=True)
class Size:
    """A symbolic size such as ``N`` or ``4*N``; `dim` is None where the IR cannot say how it follows from the input."""

    dim: str | None

    def __add__(self, other: object) -> Size:
        return self if other == 0 else Size(None)

    def __sub__(self, other: object) -> Size | int:
        if isinstance(other, Size) and other.dim == self.dim is not None:
            return 0
        return self if other == 0 else Size(None)

    def __rsub__(self, other: object) -> Size:
        return Size(None)

    def __mul__(self, other: object) -> Size | int:
        if other == 0:
            return 0
        if self.dim is None or isinstance(other, Size) or not isinstance(other, int | float) or other != int(other):
            return Size(None)
        product = dim_product((self.dim, int(other))) if other > 0 else None
        return Size(product if isinstance(product, str) else None)

    def __floordiv__(self, other: object) -> Size | int:
        if isinstance(other, Size) and other.dim == self.dim is not None:
            return 1
        if self.dim is None or not isinstance(other, int | float) or other <= 0:
            return Size(None)
        number, symbol = dim_factors(self.dim)
        if number % other:
            return Size(None)
        return Size(str(dim_product((int(number // other), symbol or ""))))

    def __truediv__(self, other: object) -> Size | int:
        return self // other

    def __rtruediv__(self, other: object) -> Size:
        return Size(None)

    __radd__ = __add__
    __rmul__ = __mul__
    __rfloordiv__ = __rtruediv__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Size):
            if self.dim is not None and self.dim == other.dim:
                return True
        elif isinstance(other, int | float) and other <= 0:
            return False  # sizes are positive
        raise Unresolved

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __gt__(self, other: object) -> bool:
        if isinstance(other, int | float) and other <= 0:
            return True
        raise Unresolved

    def __lt__(self, other: object) -> bool:
        return not self >= other

    def __ge__(self, other: object) -> bool:
        return other == 1 or self > other

    def __le__(self, other: object) -> bool:
        return not self > other

    def __hash__(self) -> int:
        return hash(self.dim)

    def __bool__(self) -> bool:
        return True


def element_of(dim: Dim) -> int | Size:
    """A size as an element of an object array."""
    return dim if isinstance(dim, int) else Size(dim)


def dim_of(element: object) -> Dim | None:
    """The size that an element of an object array stands for; None where only the run can tell."""
    return element.dim if isinstance(element, Size) else int(element)  # pyright: ignore[reportArgumentType] a number
