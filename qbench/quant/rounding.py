"""The ways in which an accumulator becomes an integer of the output: "int8" is at least five different results."""

from typing import Literal, get_args

Rounding = Literal[
    "tflite_double",
    "tflite_single",
    "tvm_upward",
    "tvm_tonearest",
    "fp32_rne",
    "pow2_half_up",
    "pow2_half_even",
    "fp64_away",
]
"""
``tflite_single``
    ``(x * M + 2^(t-1)) >> t`` in 64 bits, saturated to 32: TFLite's newer kernels.
``tflite_double``
    A saturating left shift, a high multiply that rounds ties up, a right shift that rounds ties away from zero:
    TFLite's reference convolutions (gemmlowp).
``tvm_upward``, ``tvm_tonearest``
    A 64-bit product whose ties go up, or away from zero: TVM's QNN dialect.
``fp32_rne``
    int32 to float32, times a float32 multiplier, ties to even: onnxruntime and XNNPACK convolutions.
``pow2_half_up``, ``pow2_half_even``
    A rounding right shift, only where the multiplier is a power of two.
``fp64_away``
    The accumulator times a float64 multiplier, ties away from zero, saturated to 32 bits: LiteRT's reference fully
    connected.
"""

ROUNDINGS: tuple[Rounding, ...] = get_args(Rounding)

FIXED_POINT: frozenset[Rounding] = frozenset({"tflite_double", "tflite_single", "tvm_upward", "tvm_tonearest"})
"""Modes that multiply by a 31-bit mantissa and shift."""

POWER_OF_TWO: frozenset[Rounding] = frozenset({"pow2_half_up", "pow2_half_even"})
"""Modes that only shift."""
