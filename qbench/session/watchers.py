"""Telling those who look that something changed, without keeping them alive."""

import threading
import weakref
from collections.abc import Callable
from types import MethodType
from typing import cast

Callback = Callable[[], None]


class Watchers:
    """Who wants to know; a bound method counts only as long as its object is alive."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._references: list[Callable[[], Callback | None]] = []

    def add(self, callback: Callback) -> None:
        """Call it at each `tell` from now on, on whatever thread that is; it must not raise."""
        reference = weakref.WeakMethod(callback) if isinstance(callback, MethodType) else lambda: callback
        with self._lock:
            self._references.append(cast("Callable[[], Callback | None]", reference))

    def remove(self, callback: Callback) -> None:
        """Call it no more."""
        with self._lock:
            self._references = [one for one in self._references if one() not in (None, callback)]

    def tell(self) -> None:
        """Call all that are still there, the earliest first."""
        with self._lock:
            called = [one() for one in self._references]
            self._references = [one for one, alive in zip(self._references, called, strict=True) if alive is not None]
        for callback in called:
            if callback is not None:
                callback()
