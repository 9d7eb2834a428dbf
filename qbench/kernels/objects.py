"""Object files in memory: LLVM's linker puts their machine code where this process can call it, without Numba."""

import sys
from functools import cache
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm

_HELPERS = "numba._helperlib"
"""The library with what compiled code calls when it fails, and some of its arithmetic. It needs no other part."""


def numba_folder() -> Path:
    """Where Numba lies, without importing it."""
    package = find_spec("numba")
    return Path(((package and package.submodule_search_locations) or [""])[0])


class ObjectCode(NamedTuple):
    """An object file with a C function. What it defines for others has names that no other file has."""

    data: bytes
    symbol: str
    """The function."""
    calls: tuple[str, ...]
    """What its code calls that lies elsewhere."""


def load(code: ObjectCode) -> int:
    """The address of the function, which stays there for as long as the process lives."""
    engine = _engine()
    if any(llvm.address_of_symbol(name) is None for name in code.calls):
        import_module("numba.core.registry").cpu_target.target_context.codegen()  # makes more libraries known
    engine.add_object_file(llvm.ObjectFileRef.from_data(code.data))
    engine.finalize_object()
    address = engine.get_function_address(code.symbol)
    if not address:
        raise ValueError(f"an object file lacks {code.symbol}")
    return address


@cache
def _engine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name, address in _helpers().items():
        llvm.add_symbol(f"numba_{name}", address)
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


def _helpers() -> dict[str, int]:
    """Names and addresses of Numba's helpers. Their library is loaded without importing Numba."""
    files = (numba_folder() / f"_helperlib{suffix}" for suffix in EXTENSION_SUFFIXES)
    file = next((file for file in files if file.exists()), None)
    spec = file and spec_from_file_location(_HELPERS, file)
    if _HELPERS in sys.modules or not spec or not spec.loader:
        return import_module(_HELPERS).c_helpers
    library = module_from_spec(spec)
    spec.loader.exec_module(library)
    return library.c_helpers
