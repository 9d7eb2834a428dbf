"""Machine code of Python functions, compiled when it is first needed and kept on disk."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache
from numba.core.ccallback import CFunc

__all__ = ["compiled"]

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


class _Cache(FunctionCache):
    """Numba's cache on disk, where code is known by its name and by the sources of all kernels.

    Numba's own key, the bytes of one function and what it closes over, misses changes in the functions called and never
    finds again what closes over a compiled function.
    """

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self._name_of_code = name
        super().__init__(function)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple(), self._name_of_code, _sources()


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
    code: Any = CFunc(function, (arguments, result), {}, {})
    code._cache = _Cache(function, name)  # enable_caching() leaves no choice of the key
    code.compile()
    return code
