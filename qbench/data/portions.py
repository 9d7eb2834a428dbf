"""Parts of data that nobody has read yet."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, Protocol

from numpy.typing import NDArray

Feeds = Mapping[str, NDArray[Any]]
Kind = tuple[tuple[int, ...], ...]
"""The shapes of samples, one for each input, without the axis that counts them."""


class Ordered(Protocol):
    """Data that is read front to back."""

    def pieces_in_order(self) -> Iterator[Feeds]:
        """The smallest pieces that a graph can be fed."""
        ...


class Lazy(Feeds):
    """Arrays by input name, read when the first of them is asked for."""

    def __init__(self, names: Sequence[str], read: Callable[[], Feeds]) -> None:
        self._names, self._read = names, read

    def __reduce__(self) -> tuple[type[Lazy], tuple[Sequence[str], Callable[[], Feeds]]]:
        return Lazy, (self._names, self._read)

    @cached_property
    def _feeds(self) -> Feeds:
        return self._read()

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._feeds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Reader:
    """Reads pieces by number; front to back for as long as the numbers ascend."""

    def __init__(self, data: Ordered) -> None:
        self._data, self._next = data, 0
        self._pieces = iter(data.pieces_in_order())

    def read(self, first: int, last: int) -> Iterator[Feeds]:
        """The pieces from the first up to the one before the last."""
        if first < self._next:
            self._next, self._pieces = 0, iter(self._data.pieces_in_order())
        for piece in islice(self._pieces, first - self._next, last - self._next):
            self._next = first = first + 1
            yield piece


class Pieces:
    """Some pieces of data that can only be read front to back, or lies in memory; another process gets copies."""

    def __init__(self, reader: Reader, first: int, last: int) -> None:
        self._reader, self._range = reader, (first, last)

    def __iter__(self) -> Iterator[Feeds]:
        return self._reader.read(*self._range)

    def __reduce__(self) -> tuple[type[list[Feeds]], tuple[list[Feeds]]]:
        return list, ([*self],)


def digest_of(feeds: Feeds) -> str:
    """Of names, types, shapes and values."""
    digest = hashlib.sha256()
    for name, array in sorted(feeds.items()):
        digest.update(f"{name!r} {array.dtype} {array.shape} ".encode("utf-8", "surrogatepass"))
        digest.update(array.tobytes())
    return digest.hexdigest()
