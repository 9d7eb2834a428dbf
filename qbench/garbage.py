"""Objects that stay: looking for garbage among them again and again takes a good part of work in Python."""

import gc
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


@contextmanager
def set_aside() -> Generator[None]:
    """While this is open, garbage is looked for only in what is made from now on, not in all that was there before."""
    whole = not gc.get_freeze_count()
    gc.freeze()
    try:
        yield
    finally:
        if whole:
            gc.unfreeze()
