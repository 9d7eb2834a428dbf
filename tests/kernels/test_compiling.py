from __future__ import annotations

import ctypes

import numba
import numpy as np
import pytest

from qbench.kernels.compiling import compile_function
from qbench.kernels.jit import intrinsic, register_jitable, types
from qbench.kernels.objects import load
from qbench.kernels.system import give_way

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def test_what_compiled_code_calls_can_be_called_by_others_later() -> None:
    @register_jitable
    def double(x):
        return 2 * x

    @register_jitable
    def quadruple(x):
        return double(double(x))

    @numba.njit
    def increase(x):
        return x + 1

    def call(x):
        return quadruple(increase(x)) + double(x)

    address = load(compile_function(call, ("int64",), "int64"))
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(10) == 4 * 11 + 20
    assert increase(10) == 11
    assert numba.njit(lambda x: quadruple(x) + double(x))(10) == 60


def test_what_an_object_calls_is_told() -> None:
    """C's functions and Numba's helpers; the loader looks for each before it links."""

    def call(x):
        give_way()
        return 7 // x

    code = compile_function(call, ("int64",), "int64")
    assert {"sched_yield", "numba_do_raise", "PyErr_WriteUnraisable"} <= set(code.calls)
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(load(code))(2) == 3


def test_code_with_an_address_of_this_process_is_refused() -> None:
    table = np.arange(1 << 20)  # too large to be written into the code
    with pytest.raises(NotImplementedError, match="holds addresses of this process"):
        compile_function(lambda i: table[i], ("int64",), "int64")


def test_what_is_declared_before_numba_is_loaded_and_after_is_known() -> None:
    @intrinsic
    def next_one(context, x):
        def generate(context, builder, signature, arguments):
            return builder.add(arguments[0], arguments[0].type(1))

        return types.int64(types.int64), generate

    with pytest.raises(NotImplementedError, match="next_one can be called by compiled code only"):
        next_one(1)
    address = load(compile_function(lambda x: next_one(x), ("int64",), "int64"))  # pyright: ignore[reportCallIssue]
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(41) == 42
