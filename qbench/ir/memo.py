"""Work that is not done again while what it depends on stays the same."""

from collections.abc import Callable, Hashable
from typing import TypeVar, cast

T = TypeVar("T")


class Memo:
    """The last results at each place, given again for as long as the place depends on the same things.

    An edit of a config changes few places of a graph: for all others, a memo returns the very objects of the time
    before, so that whoever comes later compares them by identity. A result must be a pure function of what is given; a
    memo changes how long work takes, and nothing else. Safe to share between threads.

    Parameters
    ----------
    depth
        Results kept at each place: one where work follows edits, more where it tries this and that in turn.
    """

    def __init__(self, depth: int = 1) -> None:
        self._depth = depth
        self._last: dict[Hashable, tuple[tuple[tuple[object, ...], object], ...]] = {}

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
        last = self._last.get(place, ())
        for number, (others, known) in enumerate(last):
            if others == given and holds(cast(T, known)):
                if number:
                    self._last[place] = (last[number], *last[:number], *last[number + 1 :])
                return cast(T, known)
        made = make()
        self._last[place] = ((given, made), *last[: self._depth - 1])
        return made
