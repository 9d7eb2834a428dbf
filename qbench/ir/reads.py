"""What a piece of work has looked up, recorded while it worked: the key of its result is what was asked."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Reads:
    """Entries of some mappings that were looked up, and what was found there."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, object], object] = {}

    def view(self, name: str, mapping: Mapping[K, V]) -> Mapping[K, V]:
        """The mapping, each look-up in it recorded under that name."""
        return _View(self._found, name, mapping)

    def hold(self, mappings: Mapping[str, Mapping[Any, Any]]) -> bool:
        """Whether the same look-ups in these mappings, by name, find the same now."""
        for (name, key), found in self._found.items():
            now = mappings[name].get(key, _ABSENT)
            if now is not found and now != found:
                return False
        return True


_ABSENT = object()


class _View(Mapping[K, V]):
    def __init__(self, found: dict[tuple[str, object], object], name: str, mapping: Mapping[K, V]) -> None:
        self._found, self._name, self._mapping = found, name, mapping

    def __getitem__(self, key: K) -> V:
        if key not in self._mapping:
            self._found[self._name, key] = _ABSENT
            raise KeyError(key)
        value = self._mapping[key]
        self._found[self._name, key] = value
        return value

    def __iter__(self) -> Iterator[K]:
        raise TypeError(f"{self._name} can be asked for single entries only: all of them would be too much to compare")

    def __len__(self) -> int:
        raise TypeError(f"{self._name} can be asked for single entries only: all of them would be too much to compare")
