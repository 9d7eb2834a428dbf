"""How many threads NumPy's BLAS and LAPACK take."""

import ctypes
import importlib
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

_NAMES = ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads64_", "openblas_{}_num_threads")


class _Library:
    """OpenBLAS, where NumPy brings it; other libraries are left alone."""

    def __init__(self) -> None:
        self._lock, self._users, self._before = threading.Lock(), 0, 0

    @cached_property
    def functions(self) -> tuple[Any, Any] | None:
        """What gets and what sets the number of threads."""
        library = ctypes.CDLL(importlib.import_module("numpy.linalg._umath_linalg").__file__)
        for name in _NAMES:
            if hasattr(library, name.format("set")):
                return getattr(library, name.format("get")), getattr(library, name.format("set"))
        return None

    def change(self, more: int) -> None:
        """So many more users of one thread; the last one leaves as many threads as the first one found."""
        with self._lock:
            if self.functions is None:
                return
            get, put = self.functions
            if not self._users:
                self._before = get()
            self._users += more
            put(1 if self._users else self._before)


_LIBRARY = _Library()


@contextmanager
def one_blas_thread() -> Generator[None]:
    """Within, BLAS takes one thread in all of the process: others would make results depend on how many there are.

    Its threads also spin while they wait, which takes more time than products of a layer's size where threads of ours,
    or other programs, want the processors.
    """
    _LIBRARY.change(1)
    try:
        yield
    finally:
        _LIBRARY.change(-1)
