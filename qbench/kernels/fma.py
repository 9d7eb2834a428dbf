"""Multiply and add with one rounding in float32, as one instruction where the processor has it."""

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload

from qbench.quant.fused import fused_multiply_add


def fma(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` of float32 numbers, rounded once."""
    return np.float32(fused_multiply_add(a, b, c)[()])


@intrinsic
def _fma(context, a, b, c):
    def generate(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return types.float32(types.float32, types.float32, types.float32), generate


@overload(fma)
def _compiled(a, b, c):
    def call(a, b, c):
        return _fma(a, b, c)  # pyright: ignore[reportCallIssue] Numba passes the context

    return call
