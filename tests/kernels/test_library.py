"""Parts of compiled code find each other, in whatever order they are linked."""

import ctypes

import pytest
from llvmlite import ir
from numba.core.registry import cpu_target

from qbench.kernels.levels import numba_is_off
from qbench.kernels.library import as_parts

_I64 = ir.IntType(64)


def part(name, calls=()):
    """A function that adds 1 to what it is given, after the others that it calls."""
    library = cpu_target.target_context.codegen().create_library(name)
    module = library.create_ir_module(name)
    kind = ir.FunctionType(_I64, [_I64])
    function = ir.Function(module, kind, f"_ZN5numba{name}")
    builder = ir.IRBuilder(function.append_basic_block())
    value = function.args[0]
    for called in calls:
        value = builder.call(ir.Function(module, kind, f"_ZN5numba{called}"), [value])
    builder.ret(builder.add(value, _I64(1)))
    library.add_ir_module(module)
    return library


@pytest.mark.skipif(numba_is_off(), reason="nothing is compiled")
@pytest.mark.parametrize("order", ["bc", "cb"])
def test_a_part_is_found_that_was_linked_before_its_caller(order):
    """LLVM leaves out a function that nothing calls of what was linked before it."""
    with as_parts():
        parts = {"c": part(f"c{order}"), "b": part(f"b{order}", [f"c{order}"])}
        top = part(f"a{order}", [f"b{order}"])
        for name in order:
            top.add_linking_library(parts[name])
        address = top.get_pointer_to_function(f"_ZN5numbaa{order}")
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address)(10) == 13
