"""Objects that stay: looking for garbage among them again and again takes a good part of work in Python."""

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def lasting() -> Generator[None]:
    """Import within this: what is made here stays until the process ends, and nobody looks for garbage in it."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()


_lock = threading.Lock()
_open = 0


@contextmanager
def set_aside() -> Generator[None]:
    """While this is open, garbage is looked for only in what is made from now on, not in all that was there before.

    Where several threads have it open, the last one to leave ends it; then everything is looked at again.
    """
    global _open
    with _lock:
        _open += 1
        gc.freeze()
    try:
        yield
    finally:
        with _lock:
            _open -= 1
            if not _open:
                gc.unfreeze()
