"""Reading ahead: what comes next is decoded while the last of it is computed with."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextvars import copy_context
from typing import Generic, TypeVar

_BYTES, _FEWEST = 1 << 26, 2

T = TypeVar("T")


def ahead(items: Iterable[T], nbytes: Callable[[T], int]) -> Iterator[T]:
    """The same items in the same order, read by another thread: two, or up to 64 MiB of them, before they are due.

    Parameters
    ----------
    items
        What they raise is raised here, where it is due.
    nbytes
        How large an item is.
    """
    reader = _Reader(items, nbytes)
    threading.Thread(target=copy_context().run, args=(reader.read,), name="qbench reading", daemon=True).start()
    try:
        yield from reader.taken()
    finally:
        reader.stop()


class _Reader(Generic[T]):
    """Items that were read and not yet taken."""

    def __init__(self, items: Iterable[T], nbytes: Callable[[T], int]) -> None:
        self._items, self._nbytes = items, nbytes
        self._waiting: deque[T] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._ended, self._stopped = False, False
        self._error: BaseException | None = None

    def read(self) -> None:
        """Run by the thread."""
        error = None
        try:
            for item in self._items:
                with self._changed:
                    self._waiting.append(item)
                    self._bytes += self._nbytes(item)
                    self._changed.notify()
                    self._changed.wait_for(self._has_room)
                    if self._stopped:
                        return
        except BaseException as raised:  # told by whoever takes
            error = raised
        with self._changed:
            self._ended, self._error = True, error
            self._changed.notify()

    def taken(self) -> Iterator[T]:
        """The items."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended)
                if not self._waiting:
                    break
                item = self._waiting.popleft()
                self._bytes -= self._nbytes(item)
                self._changed.notify()
            yield item
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Nobody wants more."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _has_room(self) -> bool:
        return self._stopped or len(self._waiting) < _FEWEST or self._bytes < _BYTES
