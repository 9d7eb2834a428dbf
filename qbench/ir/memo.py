"""Work that is not done again while what it depends on stays the same."""

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

T = TypeVar("T")


class Memo:
    """The last result at each place, given again for as long as the place depends on the same things.

    An edit of a config changes few places of a graph: for all others, a memo returns the very objects of the time
    before, so that whoever comes later compares them by identity. A result must be a pure function of what is given; a
    memo changes how long work takes, and nothing else. Safe to share between threads.
    """

    def __init__(self) -> None:
        self._last: dict[Hashable, tuple[tuple[object, ...], object]] = {}

    def recall(
        self,
        place: Hashable,
        given: tuple[object, ...],
        make: Callable[[], T],
        holds: Callable[[T], bool] = lambda made: True,
    ) -> T:
        """What `make` returns, or has returned here last time if it was given the same.

        Parameters
        ----------
        place
            Where in the work this is: the name of a pass with that of a node, say.
        given
            All that the result depends on, compared by value (at once where it is the same object).
        make
            Not called twice in a row for equal `given`.
        holds
            Whether what else a result depends on, as it recorded itself, is what it was.
        """
        known = self._last.get(place)
        if known is not None and known[0] == given and holds(cast(T, known[1])):
            return cast(T, known[1])
        made = make()
        self._last[place] = (given, made)
        return made
