"""What single samples of a session's data look like, and tell of the rest: each is read once."""

from collections.abc import Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from qbench.errors import QBenchError
from qbench.session.session import Session
from qbench.views import Picture, State, caveats, picture

_PEEKED = 4  # samples that tell the scale of the data


class Samples:
    """The samples that a session is evaluated on, as far as the data is still there."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._first: tuple[Mapping[str, NDArray[Any]], ...] | None = None
        self._pictures: dict[int, Picture | None] = {}  # small, and few samples flip

    def picture(self, index: int) -> Picture | None:
        """What a sample looks like; None where it is no image, or the data is gone."""
        if index not in self._pictures:
            try:
                self._pictures[index] = picture(self._session.source, self._session.sample(index))
            except QBenchError:
                return None
        return self._pictures[index]

    def caveats(self, state: State) -> tuple[str, ...]:
        """What makes the numbers of a state worth less than they seem."""
        if self._first is None:
            self._first = tuple(self._peeked())
        return caveats(state, self._first)

    def _peeked(self) -> Iterator[Mapping[str, NDArray[Any]]]:
        for index in range(_PEEKED):
            try:
                yield self._session.sample(index)
            except QBenchError:
                return
