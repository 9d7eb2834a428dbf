"""Object code of Python functions: the one place where Numba is called to compile."""

import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

from numba.core import types
from numba.core.bytecode import FunctionIdentity
from numba.core.ccallback import CFunc

from qbench.kernels.jit import NO_MEMORY, tell
from qbench.kernels.library import as_parts
from qbench.kernels.objects import ObjectCode

# Numba tells functions of one name apart by a number that it counts from 1 in each process, and the linker takes the
# first of equal symbols: kernels that two processes compiled and a third one loads would run each other's code.
FunctionIdentity._unique_ids = itertools.count(int.from_bytes(os.urandom(7), "big"))  # pyright: ignore[reportPrivateUsage] no public way


def compile_function(function: Callable[..., Any], arguments: Sequence[str], result: str) -> ObjectCode:
    """Compile a function of numbers.

    Parameters
    ----------
    function
        What Numba understands.
    arguments, result
        Names of Numba's types, as ``int64``.
    """
    tell()
    signature = tuple(getattr(types, name) for name in arguments), getattr(types, result)
    code: Any = CFunc(function, signature, {}, NO_MEMORY)
    with as_parts():
        made = code._compile_uncached()  # compile() would look for it on disk first
        library, symbol = made.library, made.fndesc.llvm_cfunc_wrapper_name
        library.get_pointer_to_function(symbol)  # optimizes all that was added to it
        if library.has_dynamic_globals:
            raise NotImplementedError(f"{function.__qualname__} holds addresses of this process")
        return ObjectCode(library._get_compiled_object(), symbol, library.calls)
