"""What a thread asks of its processor and its system: to wait, the time, a byte from another thread."""

import platform
import time
from typing import Any

from llvmlite import ir

from qbench.kernels.jit import cgutils, intrinsic, types

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_PAUSE = {"x86_64": ("llvm.x86.sse2.pause",), "aarch64": ("llvm.aarch64.isb", 15), "arm64": ("llvm.aarch64.isb", 15)}


@intrinsic
def pause(context):
    """Tell the processor that this thread spins."""

    def generate(context, builder, signature, arguments):
        if platform.machine() in _PAUSE:
            name, *numbers = _PAUSE[platform.machine()]
            kind = ir.FunctionType(ir.VoidType(), [_I32] * len(numbers))
            builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [_I32(i) for i in numbers])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def give_way(context):
    """Let another thread have this thread's core, if one waits for it."""

    def generate(context, builder, signature, arguments):
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(_I32, []), "sched_yield")
        builder.call(function, [])
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def clock(context):
    """Nanoseconds of the clock that never goes back: that of ``time.monotonic_ns``."""

    def generate(context, builder, signature, arguments):
        now = cgutils.alloca_once(builder, ir.ArrayType(_I64, 2))
        kind = ir.FunctionType(_I32, [_I32, now.type])
        function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
        builder.call(function, [_I32(time.CLOCK_MONOTONIC), now])
        seconds, nanoseconds = (builder.extract_value(builder.load(now), i) for i in (0, 1))
        return builder.add(builder.mul(seconds, _I64(1_000_000_000)), nanoseconds)

    return types.int64(), generate


def _transfer(builder: Any, name: str, arguments: Any) -> Any:
    file, address = arguments
    kind = ir.FunctionType(_I64, [_I32, _I64.as_pointer(), _I64])
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, [builder.trunc(file, _I32), builder.inttoptr(address, _I64.as_pointer()), _I64(1)])


@intrinsic
def read_byte(context, file, address):
    """Wait for one byte from an open file, such as a pipe, and write it at an address; gives the number of bytes."""

    def generate(context, builder, signature, arguments):
        return _transfer(builder, "read", arguments)

    return types.int64(types.int64, types.int64), generate


@intrinsic
def write_byte(context, file, address):
    """Write the byte at an address to an open file; gives the number of bytes."""

    def generate(context, builder, signature, arguments):
        return _transfer(builder, "write", arguments)

    return types.int64(types.int64, types.int64), generate
