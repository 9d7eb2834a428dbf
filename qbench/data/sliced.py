"""Samples that lie in files are taken by number or as one piece, as those of an array are."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self, TypeVar, overload

from qbench.errors import DataError

T_co = TypeVar("T_co", covariant=True)


class Sliced(Sequence[T_co]):
    """A sequence whose parts are of its own kind, and read nothing before they are asked."""

    @abstractmethod
    def part(self, first: int, last: int) -> Self:
        """The samples from one on up to another, which whoever gets it reads for himself."""

    @abstractmethod
    def at(self, index: int) -> T_co:
        """The sample of a number from 0 to the length."""

    @overload
    def __getitem__(self, index: int) -> T_co: ...

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: int | slice) -> T_co | Self:
        """One sample, or a part; IndexError outside, DataError for a part with gaps."""
        if isinstance(index, slice):
            first, last, step = index.indices(len(self))
            if step != 1:
                raise DataError(f"samples in files are taken in one piece, x[a:b], not in steps of {step}")
            return self.part(first, max(first, last))
        if not -len(self) <= index < len(self):
            raise IndexError(f"there are {len(self)} samples, and none of number {index}")
        return self.at(index % len(self))
