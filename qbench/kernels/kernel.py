"""A kernel: a Python function over memory, compiled by Numba when it is first needed and kept on disk."""

from __future__ import annotations

import hashlib
import itertools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import carray, types
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache
from numba.core.ccallback import CFunc

__all__ = ["Kernel", "KernelFunction", "record"]

KernelFunction = Callable[[Any, Any, int, int], None]
"""``function(args, bases, thread, threads)``: does the share `thread` of `threads` of the work."""

_MANY = 1 << 15  # a bound on the number of bases, for arrays over memory whose length the kernel does not know
_lock = threading.Lock()

# Numba tells functions of one name apart by a number that it counts from 1 in each process, and the linker takes the
# first of equal symbols: kernels that two processes compiled and a third one loads would run each other's code.
FunctionIdentity._unique_ids = itertools.count(int.from_bytes(os.urandom(7), "big"))  # pyright: ignore[reportPrivateUsage] no public way


def record(**fields: str) -> np.dtype[np.void]:
    """The type of a kernel's arguments: names with NumPy's codes, such as ``x="i8", scale="f4"``.

    Raises
    ------
    ValueError
        A field that could not be read as an attribute, because NumPy's records have one of that name.
    """
    if taken := [name for name in fields if hasattr(np.record, name)]:
        raise ValueError(f"records have attributes {taken} of their own: name the fields otherwise")
    return np.dtype((np.record, list(fields.items())), align=True)


@cache
def _sources() -> str:
    """A digest of everything that compiled code is made from."""
    digest = hashlib.sha256(numba.__version__.encode())
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


class _Cache(FunctionCache):
    """Numba's cache on disk, where a kernel is known by its name and by the sources of all kernels.

    Numba's own key, the bytes of one function and what it closes over, misses changes in the functions called and never
    finds again what closes over a compiled function.
    """

    def __init__(self, function: Callable[..., None], name: str) -> None:
        self._kernel = name
        super().__init__(function)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple(), self._kernel, _sources()


@dataclass(frozen=True)
class Kernel:
    """One variant of a kernel.

    Parameters
    ----------
    name
        Unique, with everything that tells the variant from others: ``conv.avx512vnni.6x4``.
    arguments
        Made by :func:`record`.
    function
        What it does; see :data:`KernelFunction`.
    """

    name: str
    arguments: np.dtype[np.void]
    function: KernelFunction

    @cached_property
    def dispatcher(self) -> Any:
        """The function as Numba sees it: what other kernels can call, and what is called where bounds are checked."""
        return numba.njit(nogil=True)(self.function)

    @cached_property
    def address(self) -> int:
        """Address of the machine code ``void(args*, bases*, thread, threads)``; compiled or loaded at first use."""
        with _lock:
            return int(self._compiled.address)

    @cached_property
    def _compiled(self) -> Any:
        dispatcher = self.dispatcher

        def entry(arguments: Any, bases: Any, thread: int, threads: int) -> None:
            dispatcher(carray(arguments, 1)[0], carray(bases, _MANY), thread, threads)

        arguments = types.CPointer(numba.from_dtype(self.arguments))
        signature = (arguments, types.CPointer(types.int64), types.int64, types.int64), types.void
        compiled: Any = CFunc(entry, signature, {}, {})
        compiled._cache = _Cache(entry, self.name)  # enable_caching() leaves no choice of the key
        compiled.compile()
        return compiled
