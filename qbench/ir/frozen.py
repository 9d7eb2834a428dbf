"""Two immutable containers that graphs are made of: a mapping, and an array that is equal by value."""

import hashlib
from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from qbench.ir.dtypes import DType, dtype_of
from qbench.ir.mapped import release
from qbench.ir.types import TensorType

K = TypeVar("K")
V = TypeVar("V")


class FrozenMap(Mapping[K, V]):
    """A dict that cannot change, keeps its order, is hashable where its values are, and survives pickling."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[K, V] | None = None) -> None:
        self._items: dict[K, V] = items._items if isinstance(items, FrozenMap) else dict(items or {})

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    # those that Mapping has are made of __getitem__, which takes five times as long

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key, or the default."""
        return self._items.get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def keys(self) -> KeysView[K]:
        """A view of the keys."""
        return self._items.keys()

    def values(self) -> ValuesView[V]:
        """A view of the values."""
        return self._items.values()

    def items(self) -> ItemsView[K, V]:
        """A view of the pairs."""
        return self._items.items()

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return f"FrozenMap({self._items!r})"


class Constant:
    """A read-only array, equal to another if dtype, shape and every bit are the same.

    Parameters
    ----------
    array
        Any shape, any dtype of the IR. It is copied unless it is read-only and contiguous already.
    """

    def __init__(self, array: NDArray[np.generic]) -> None:
        dtype_of(array.dtype)
        array = np.asarray(array)  # NumPy's arithmetic on arrays without axes makes scalars
        if array.flags.writeable or not array.flags.c_contiguous:
            array = np.array(array, order="C", copy=True)
            array.flags.writeable = False
        self.array = array

    @classmethod
    def known(cls, array: NDArray[np.generic], digest: str) -> Self:
        """A constant of which somebody knows the digest already."""
        made = cls(array)
        vars(made)["digest"] = digest
        return made

    @property
    def dtype(self) -> DType:
        """Element type."""
        return dtype_of(self.array.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape, as plain ints."""
        return tuple(self.array.shape)

    @cached_property
    def type(self) -> TensorType:
        """Shape and element type."""
        return TensorType(self.shape, self.dtype)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over dtype, shape and bytes: the identity of the content."""
        digest = hashlib.sha256(f"{self.dtype}{self.shape}".encode())
        digest.update(self.array.reshape(-1).view(np.uint8).data)  # without a copy
        release(self.array)
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and (self is other or self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Constant({self.dtype}{list(self.shape)}, {self.digest[:12]})"
