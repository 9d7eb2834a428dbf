"""How functions of functions are compiled: each is typed by itself, but made into machine code once, with its caller.

Numba optimizes every function that a compiled one calls and makes machine code of it, links what it optimized into the
caller and optimizes it again there, once for each function in between. Nobody calls those parts by themselves here.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from numba import _dynfunc  # pyright: ignore[reportAttributeAccessIssue] compiled
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target


class _Part(JITCodeLibrary):
    """Code that lies as it was written until somebody asks for its address.

    Attributes
    ----------
    calls
        What the finished code calls that lies elsewhere.
    """

    calls: tuple[str, ...] = ()

    def _optimize_functions(self, ll_module: Any) -> None:
        """The caller's optimization begins with the same passes."""
        ll_module.data_layout = self._codegen._data_layout  # pyright: ignore[reportPrivateUsage] as Numba does

    def add_linking_library(self, library: Any) -> None:
        """Take over a part with the parts that it calls, and others as they are: optimized, with all they call."""
        others = library._linking_libraries if isinstance(library, _Part) and not library._finalized else ()
        self._linking_libraries: list[Any] = list(dict.fromkeys((*self._linking_libraries, library, *others)))

    def _get_module_for_linking(self) -> Any:
        if not self._finalized and self._shared_module is None:
            module = self._final_module.clone()
            for function in module.functions:
                if not function.is_declaration and function.linkage.name == "external":
                    function.linkage = "linkonce_odr"  # several parts may have the same ones
            self._shared_module = module
        return self._shared_module or super()._get_module_for_linking()

    def _optimize_final_module(self) -> None:
        """Twice: the second time finds loops to make vectors of in what the first has put into each other."""
        self._link_left_out()
        super()._optimize_final_module()
        super()._optimize_final_module()
        names = (function.name for function in self._final_module.functions if function.is_declaration)
        self.calls = tuple(name for name in names if not name.startswith("llvm."))

    def _link_left_out(self) -> None:
        """LLVM leaves out a function that nothing calls of what was linked before it: its callers may come later."""
        libraries: dict[Any, None] = {}
        waiting: list[Any] = [*self._linking_libraries]
        while waiting:
            library = waiting.pop()
            if library not in libraries:
                libraries[library] = None
                waiting += library._linking_libraries
        missing, before = self._missing(), set[str]()
        while missing and missing != before:
            for library in libraries:
                module = library._get_module_for_linking()
                if any(not function.is_declaration and function.name in missing for function in module.functions):
                    self._final_module.link_in(module, preserve=True)
            missing, before = self._missing(), missing

    def _missing(self) -> set[str]:
        """Functions that Numba made and no part that was linked defines."""
        declared = (function.name for function in self._final_module.functions if function.is_declaration)
        return {name for name in declared if name.startswith("_ZN5numba")}

    def finalize(self) -> None:
        self._shared_module = None
        super().finalize()

    def get_pointer_to_function(self, name: str) -> int:
        """The address, or 0 without doing anything where there is no such function: Numba asks for wrappers of all."""
        if not self._finalized and not any(function.name == name for function in self._final_module.functions):
            return 0
        return super().get_pointer_to_function(name)


@contextmanager
def as_parts() -> Generator[None]:
    """Compile so for as long as this is open; other threads wait with compiling."""
    context: Any = cpu_target.target_context
    codegen = context.codegen()

    def executable(library: Any, fndesc: Any, env: Any) -> Any:
        if library.get_pointer_to_function(fndesc.llvm_cpython_wrapper_name):
            return type(context).get_executable(context, library, fndesc, env)
        return _dynfunc.make_function(fndesc.lookup_module(), fndesc.qualname, "", 0, env, (library,))  # only a key

    with global_compiler_lock:
        usual, codegen._library_class, context.get_executable = codegen._library_class, _Part, executable
        collects = gc.isenabled()
        gc.disable()  # what is made stays: looking for garbage in it again and again takes a tenth of the time
        try:
            yield
        finally:
            codegen._library_class = usual
            del context.get_executable
            if collects:
                gc.enable()
