"""What tests of kernels that end in a requantize share: random multipliers, and the NumPy result."""

from __future__ import annotations

import numpy as np

from qbench.kernels.rounding import is_plain, two_parts
from qbench.ops.integer.requantize import (
    IntegerRequantize,
    IntegerRequantizeFloat32,
    IntegerRequantizeFloat64,
    IntegerRoundingShift,
)
from qbench.quant.rounding import POWER_OF_TWO, ROUNDINGS, Rounding


def parameters(seed: int, count: int, rounding: Rounding) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mantissas, shifts (now and then to the left) and multipliers."""
    random = np.random.default_rng(seed)
    mantissa = random.integers(2**30, 2**31, count).astype(np.int32)
    shift = random.integers(-12, random.choice([1, 35]), count).astype(np.int32)
    if rounding == "fp64_away":
        return two_parts(np.ldexp(mantissa + random.uniform(0, 1, count), shift - 31))
    multiplier = np.ldexp(mantissa, shift - 31).astype(np.float32)
    return np.full(count, 2**30, np.int32) if rounding in POWER_OF_TWO else mantissa, shift, multiplier


def is_plain_for(rounding: Rounding | None, *types: str) -> bool:
    """Which of a mode's two forms is tried with such types.

    The other one is tried with types of other widths: any two of mode, form and widths beside each other, each of which
    is a kernel to compile.
    """
    if rounding is None:
        return False
    return (ROUNDINGS.index(rounding) + sum(np.dtype(dtype).itemsize > 1 for dtype in types)) % 2 == 0


def plain_shift(shift: np.ndarray, rounding: Rounding) -> np.ndarray:
    """Shifts no further to the left than the plain form can."""
    return shift if is_plain(shift, rounding) else np.minimum(shift, 0 if rounding == "tflite_double" else 30)


def requantized(
    acc: np.ndarray, mantissa: np.ndarray, shift: np.ndarray, multiplier: np.ndarray, rounding: Rounding, dtype: str
) -> tuple[dict, np.ndarray]:
    """The fields of a kernel, and what the ops make of accumulators whose channels lie along axis 1."""
    info = np.iinfo(dtype)
    zero_point = int(np.random.default_rng(int(shift.sum()) + 2**20).integers(info.min, info.max))
    column = [-1 if axis == 1 else 1 for axis in range(acc.ndim)]
    common = {"dtype": dtype, "zero_point": zero_point}
    if rounding == "tflite_double":  # takes 32-bit accumulators only
        acc = np.clip(acc, -(2**31), 2**31 - 1)
    if rounding == "fp32_rne":
        result = IntegerRequantizeFloat32(**common).compute(acc, multiplier.reshape(column))
    elif rounding == "fp64_away":
        significand, exponent = np.frexp(np.ldexp(mantissa.astype(np.float64), shift - 31) + multiplier)
        parts = (np.ldexp(significand, 53).astype(np.int64), exponent)
        result = IntegerRequantizeFloat64(**common).compute(acc, *(part.reshape(column) for part in parts))
    elif rounding in POWER_OF_TWO:
        result = IntegerRoundingShift(**common, rounding=rounding).compute(acc, (1 - shift).reshape(column))
    else:
        op = IntegerRequantize(**common, rounding=rounding)
        result = op.compute(acc, mantissa.reshape(column), shift.reshape(column))
    offset = 128 if dtype == "int8" else 0
    fields = {
        "mantissa": mantissa, "shift": shift, "multiplier": multiplier, "zero_point": zero_point + offset,
        "low": info.min + offset, "high": info.max + offset,
    }  # fmt: skip
    return fields, result
