"""Values that have one scale, whatever it is: those that integer ops take over from each other as they stand."""

from collections.abc import Iterable, Mapping


class Ties:
    """Groups of values, joined bit by bit."""

    def __init__(self) -> None:
        self._groups: dict[str, list[str]] = {}

    def join(self, values: Iterable[str]) -> None:
        """Put values, and all that they were joined with before, into one group."""
        known = list(values)
        members = list(dict.fromkeys(member for value in known for member in self._groups.get(value, [value])))
        self._groups.update(dict.fromkeys(members, members))

    @property
    def groups(self) -> Mapping[str, list[str]]:
        """The group of each value that has one."""
        return self._groups
