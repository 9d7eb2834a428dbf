"""What a command imports stays until it ends: nobody has to look for garbage in it."""

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def lasting() -> Generator[None]:
    """Import within this; looking for garbage again and again, there and later, takes a sixth of a short command."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()
