"""A kernel: a Python function over memory, compiled by Numba when it is first needed and kept on disk."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, wraps
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.kernels.code import Code, Recipe
from qbench.kernels.jit import NO_MEMORY, PART, tell
from qbench.kernels.levels import is_python, numba_is_off
from qbench.kernels.memory import array_at

KernelFunction = Callable[[Any, Any, int, int], None]
"""``function(args, bases, thread, threads)``: does the share `thread` of `threads` of the work."""

_MANY = 1 << 15  # a bound on the number of bases, for arrays over memory whose length the kernel does not know
_ENTRY = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


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
        tell()
        return import_module("numba").njit(nogil=True, **NO_MEMORY)(self.function)

    @cached_property
    def code(self) -> Code:
        """The machine code ``void(args*, bases*, thread, threads)``."""
        record = self.arguments

        def make() -> Any:
            function: Any = import_module("numba").njit(**NO_MEMORY, **PART)(self.function)

            def entry(arguments: int, bases: int, thread: int, threads: int) -> None:
                function(array_at(arguments, 1, record)[0], array_at(bases, _MANY, np.int64), thread, threads)

            return entry

        return Code(make, ("int64",) * 4, "void", self.name, self.recipe)

    @cached_property
    def address(self) -> int:
        """Where its code lies; compiled or loaded at first use."""
        return self.code.address

    @cached_property
    def _enter(self) -> Any:
        return _ENTRY(self.address)

    def launch(self, arguments: NDArray[np.void], buffers: NDArray[np.int64], thread: int, threads: int) -> None:
        """Do the share `thread` of `threads`.

        Parameters
        ----------
        arguments
            One record.
        buffers
            int64: their addresses, from which references count.
        thread, threads
            Which share.
        """
        if not numba_is_off():
            self._enter(arguments.ctypes.data, buffers.ctypes.data, thread, threads)
            return
        call = self.function if is_python() else self.dispatcher
        with np.errstate(all="ignore"):  # as in machine code: infinities and NaN are results
            call(arguments[0], buffers, thread, threads)

    def __call__(self, **fields: Any) -> None:
        """Do all of it, on this thread.

        Parameters
        ----------
        **fields
            The arguments. Arrays stand for where their elements lie, in row-major order.

        Raises
        ------
        ValueError
            Fields are missing or too many, or elements lie otherwise.
        """
        arguments = np.recarray(1, self.arguments)
        if fields.keys() != set(self.arguments.names or ()):
            raise ValueError(f"{self.name} has the arguments {', '.join(self.arguments.names or ())}")
        for name, value in fields.items():
            if isinstance(value, np.ndarray) and not value.flags.c_contiguous:
                raise ValueError(f"{self.name}: the elements of {name} do not lie in row-major order")
            arguments[0][name] = value.ctypes.data if isinstance(value, np.ndarray) else value
        self.launch(arguments, np.zeros(1, np.int64), 0, 1)


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
