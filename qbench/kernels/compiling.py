"""Machine code of Python functions, compiled when it is first needed and kept on disk."""

import glob
import hashlib
import itertools
import os
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

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


class _Cache(FunctionCache):
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
    def kept(self) -> bool:
        """Whether the code lies on disk."""
        return Path(self._cache_path, f"{self._code_name}-{_sources()[:12]}.nbi").exists()

    def lock(self) -> Any:
        """Held by the process that compiles the code."""
        from filelock import FileLock  # loaded by who compiles: others start without it

        self._impl.locator.ensure_cache_path()
        return FileLock(Path(self._cache_path, f"{self._code_name}.lock"))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """As Numba's, without loading the whole compiler first: half a second."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    def save_overload(self, sig: Any, data: Any) -> None:
        """As Numba's; code of the same name from older sources is removed."""
        for file in Path(self._cache_path).glob(f"{glob.escape(self._code_name)}-*.nb[ci]"):
            if not file.name.startswith(f"{self._code_name}-{_sources()[:12]}"):
                with suppress(OSError):
                    file.unlink()
        super().save_overload(sig, data)


_lock = threading.Lock()


class Recipe(NamedTuple):
    """How code is made, in words that another process understands: a function of a module and its arguments."""

    module: str
    function: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Code:
    """A C function: compiled at first use, or loaded where some process compiled it before. It lives as long as this.

    Parameters
    ----------
    function
        What Numba compiles.
    arguments, result
        Numba types.
    name
        Unique among all that is compiled here, with everything that `function` closes over.
    recipe
        Who else can make it.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    result: Any
    name: str
    recipe: Recipe | None = None

    @property
    def ready(self) -> bool:
        """Whether it was compiled or loaded already."""
        return "compiled" in self.__dict__

    @property
    def kept(self) -> bool:
        """Whether some process compiled it before, and left it on disk."""
        return self._cache.kept

    @property
    def address(self) -> int:
        """Where the machine code lies."""
        with _lock:
            return int(self.compiled.address)

    @cached_property
    def compiled(self) -> Any:
        """What Numba made of it. A process that wants what another one is compiling waits, and loads it."""
        code: Any = CFunc(self.function, (self.arguments, self.result), {}, NO_MEMORY)
        code._cache = cache = self._cache  # enable_caching() leaves no choice of the key
        with ExitStack() as alone:
            if not cache.kept:
                with suppress(OSError, NotImplementedError):  # a disk without locks: some code is compiled twice
                    alone.enter_context(cache.lock())
            with as_parts():
                code.compile()
        return code

    @property
    def _cache(self) -> _Cache:
        return _Cache(self.function, self.name)
