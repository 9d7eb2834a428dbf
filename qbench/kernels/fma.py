"""Multiply and add with one rounding in float32, as one instruction where the processor has it."""

import math
from typing import Any

import numpy as np

from qbench.kernels.jit import intrinsic, overload, types
from qbench.quant.fused import fused_multiply_add


def fma(a: Any, b: Any, c: Any) -> Any:
    """``a * b + c`` of float32 numbers, rounded once."""
    total = float(a) * float(b) + float(c)  # of float64: rounding it again matters only where its neighbours differ
    if np.float32(math.nextafter(total, -math.inf)) == np.float32(math.nextafter(total, math.inf)):
        return np.float32(total)
    return np.float32(fused_multiply_add(a, b, c)[()])


@intrinsic
def _fma(context, a, b, c):
    def generate(context, builder, signature, arguments):
        return builder.fma(*arguments)

    return types.float32(types.float32, types.float32, types.float32), generate


overload(fma)(lambda a, b, c: lambda a, b, c: _fma(a, b, c))
