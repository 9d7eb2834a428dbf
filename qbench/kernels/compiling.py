"""Machine code of Python functions, compiled when it is first needed and kept on disk."""

import glob
import hashlib
import itertools
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.ccallback import CFunc
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys

from qbench.kernels.library import as_parts

NO_MEMORY: dict[str, Any] = {"_nrt": False}
"""Options of all that Numba compiles here: an array that is made in compiled code is an error when that is compiled."""

# Numba tells functions of one name apart by a number that it counts from 1 in each process, and the linker takes the
# first of equal symbols: kernels that two processes compiled and a third one loads would run each other's code.
FunctionIdentity._unique_ids = itertools.count(int.from_bytes(os.urandom(7), "big"))  # pyright: ignore[reportPrivateUsage] no public way


@cache
def _sources() -> str:
    """A digest of everything that compiled code is made from."""
    digest = hashlib.sha256(numba.__version__.encode())
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


@cache
def _machine() -> str:
    """A digest of what code is compiled for: Python's version and the processor."""
    context: Any = cpu_target.target_context
    return hashlib.sha256(repr((sys.version, context.codegen().magic_tuple())).encode()).hexdigest()


class _QuickCache(FunctionCache):
    """Numba's cache on disk, which loads what it has without loading the whole compiler first: half a second."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def jitted(function: Callable[..., Any]) -> Any:
    """A function that Python calls: compiled for the types it is called with, and kept on disk.

    It calls no functions of ours from other files: Numba's key, its own file, would miss their changes.
    """
    dispatcher: Any = numba.njit(nogil=True, **NO_MEMORY)(function)
    dispatcher._cache = _QuickCache(function)
    return dispatcher


class _Cache(_QuickCache):
    """A cache where code is known by its name and by the sources of all kernels.

    Numba's own key, the bytes of one function and what it closes over, misses changes in the functions called and never
    finds again what closes over a compiled function. Its index is of one function, which stands for all kernels here:
    each code has an index and a file of its own, or two processes that compile at once could swap theirs.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        super().__init__(function)
        self._code_name = f"{name}-{_machine()[:12]}"
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = IndexDataCacheFile(self._cache_path, f"{self._code_name}-{_sources()[:12]}", stamp)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return _machine(), _sources()

    @property
    def index(self) -> Path:
        """The file that says what is kept."""
        return Path(self._cache_path, f"{self._code_name}-{_sources()[:12]}.nbi")

    def save_overload(self, sig: Any, data: Any) -> None:
        """As Numba's; code of the same name from older sources is removed."""
        for file in Path(self._cache_path).glob(f"{glob.escape(self._code_name)}-*.nb[ci]"):
            if not file.name.startswith(f"{self._code_name}-{_sources()[:12]}"):
                with suppress(OSError):
                    file.unlink()
        super().save_overload(sig, data)


def compiled(function: Callable[..., Any], arguments: tuple[Any, ...], result: Any, name: str) -> Any:
    """A C function: compiled, or loaded where some process compiled it before. Its code lives as long as it does.

    Parameters
    ----------
    function
        What Numba compiles.
    arguments, result
        Numba types.
    name
        Unique among all that is compiled here, with everything that `function` closes over.
    """
    code: Any = CFunc(function, (arguments, result), {}, NO_MEMORY)
    code._cache = _Cache(function, name)  # enable_caching() leaves no choice of the key
    with as_parts():
        code.compile()
    return code


def is_kept(neighbour: Callable[..., Any], name: str) -> bool:
    """Whether code of this name lies on disk.

    Parameters
    ----------
    neighbour
        Any function of the file that the compiled function is written in.
    name
        As for :func:`compiled`.
    """
    return _Cache(neighbour, name).index.exists()
