"""Machine code for processors that are not here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir


def assembly(
    emit: Callable[[ir.IRBuilder, list[Any]], None], arguments: int, triple: str, cpu: str, features: str = ""
) -> str:
    """The optimized code of a function of int64 arguments, whose body `emit` writes."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * arguments), "tile")
    builder = ir.IRBuilder(function.append_basic_block())
    emit(builder, list(function.args))
    builder.ret_void()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features, opt=3)
    parsed = llvm.parse_assembly(str(module))
    parsed.triple = triple
    parsed.data_layout = str(machine.target_data)
    parsed.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(parsed, passes)
    return machine.emit_assembly(parsed)
