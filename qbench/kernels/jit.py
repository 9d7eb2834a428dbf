"""What kernels say to Numba. It is told when something has to be compiled: a process that finds all its code on disk
starts without it.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

NO_MEMORY: dict[str, Any] = {"_nrt": False}
"""Options of all that Numba compiles here: an array that is made in compiled code is an error when that is compiled."""

PART: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of what is called by compiled code only."""


class _Late:
    """A module that is imported when one of its names is asked for."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._module), name)


arrays: Any = _Late("numba.np.arrayobj")
cgutils: Any = _Late("numba.core.cgutils")
dtypes: Any = _Late("numba.core.typing.npydecl")
errors: Any = _Late("numba.core.errors")
types: Any = _Late("numba.core.types")
_extending: Any = _Late("numba.extending")
_templates: Any = _Late("numba.core.typing.templates")

_untold: list[Callable[[], object]] = []
_is_told = False


def tell() -> None:
    """Load Numba, and tell it what was declared; from now on it hears at once."""
    global _is_told
    _is_told = True
    while _untold:  # another thread may declare something meanwhile
        _untold.pop(0)()


def _later(declare: Callable[[], object]) -> None:
    if _is_told:
        declare()
    else:
        _untold.append(declare)


def register_jitable(function: Any = None, **options: Any) -> Any:
    """Numba's decorator of the same name: compiled code may call the function."""
    if function is None:
        return lambda function: register_jitable(function, **options)
    _later(lambda: (_extending.register_jitable(**options) if options else _extending.register_jitable)(function))
    return function


class Intrinsic:
    """What compiled code calls and LLVM IR is written for; nothing that Python could call."""

    def __init__(self, function: Any) -> None:
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self._function = function
        _later(self._declare)

    def _declare(self) -> None:
        template = _templates.make_intrinsic_template(self, self._function, self.__name__)
        _templates.infer(template)
        _templates.infer_global(self, types.Function(template))

    def __call__(self, *arguments: Any) -> Any:
        """For the type checker: Numba puts what it compiles in place of the call."""
        raise NotImplementedError(f"{self.__name__} can be called by compiled code only")

    def __deepcopy__(self, memo: Any) -> "Intrinsic":
        """Numba copies the code that calls it."""
        return self


def intrinsic(function: Any) -> Any:
    """Numba's decorator of the same name, for ``function(context, *types)``."""
    return Intrinsic(function)


def overload(function: Any) -> Any:
    """Numba's decorator of the same name: what compiled code has in place of a Python function."""

    def decorate(compiled: Any) -> Any:
        _later(lambda: _extending.overload(function)(compiled))
        return compiled

    return decorate


def type_callable(function: Any) -> Any:
    """Numba's decorator of the same name: how the result of a Python function is typed."""

    def decorate(typer: Any) -> Any:
        _later(lambda: _extending.type_callable(function)(typer))
        return typer

    return decorate


def lower_builtin(function: Any, *kinds: str) -> Any:
    """Numba's decorator of the same name: the IR of a Python function, for the types with these names."""

    def decorate(lower: Any) -> Any:
        _later(lambda: _extending.lower_builtin(function, *(getattr(types, kind) for kind in kinds))(lower))
        return lower

    return decorate
