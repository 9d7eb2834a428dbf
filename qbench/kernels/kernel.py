"""A kernel: a Python function over memory, compiled by Numba when it is first needed and kept on disk."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, wraps
from inspect import signature
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types

from qbench.kernels.compiling import NO_MEMORY, compiled, is_kept
from qbench.kernels.library import PART
from qbench.kernels.memory import array_at

KernelFunction = Callable[[Any, Any, int, int], None]
"""``function(args, bases, thread, threads)``: does the share `thread` of `threads` of the work."""

_MANY = 1 << 15  # a bound on the number of bases, for arrays over memory whose length the kernel does not know
_lock = threading.Lock()


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


class Recipe(NamedTuple):
    """How a kernel is made, in words that another process understands: a function of a module and its arguments."""

    module: str
    function: str
    arguments: tuple[Any, ...]


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
    recipe
        Who else can make it; from :func:`makes_kernels`.
    """

    name: str
    arguments: np.dtype[np.void]
    function: KernelFunction
    recipe: Recipe | None = field(default=None, compare=False)

    @cached_property
    def dispatcher(self) -> Any:
        """The function as Numba sees it: what is called where bounds are checked."""
        return numba.njit(nogil=True, **NO_MEMORY)(self.function)

    @property
    def ready(self) -> bool:
        """Whether the code was compiled or loaded already."""
        return "address" in self.__dict__

    @property
    def kept(self) -> bool:
        """Whether some process compiled it before, and left its code on disk."""
        return is_kept(record, self.name)

    @cached_property
    def address(self) -> int:
        """Address of the machine code ``void(args*, bases*, thread, threads)``; compiled or loaded at first use."""
        with _lock:
            return int(self._compiled.address)

    @cached_property
    def _compiled(self) -> Any:
        function: Any = numba.njit(**NO_MEMORY, **PART)(self.function)
        record = self.arguments

        def entry(arguments: int, bases: int, thread: int, threads: int) -> None:
            function(array_at(arguments, 1, record)[0], array_at(bases, _MANY, np.int64), thread, threads)

        return compiled(entry, (types.int64,) * 4, types.void, self.name)


def makes_kernels(make: Callable[..., Kernel]) -> Callable[..., Kernel]:
    """Declare a function that makes kernels: one for equal arguments, with its :class:`Recipe`.

    Arguments are annotated, and what JSON and pydantic can carry: text, numbers, enums, data classes of them.
    """

    @cache
    @wraps(make)
    def made(*args: Any, **kwargs: Any) -> Kernel:
        given = signature(make).bind(*args, **kwargs)
        given.apply_defaults()
        return replace(make(*args, **kwargs), recipe=Recipe(make.__module__, make.__name__, given.args))

    return made
