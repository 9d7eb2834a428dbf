"""TFLite's softmax in integers: a table of exponentials, their sum, and a fixed-point reciprocal."""

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from qbench.errors import GraphError
from qbench.ir.dtypes import DType, integer_range
from qbench.ir.op import Array, register
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ops.integer.requantize import saturate
from qbench.ops.rules import InternalOp, axis_within, require
from qbench.ops.tflite.interpolation import interpolated, sampled
from qbench.quant.fixed_functions import exp_of_negative, reciprocal
from qbench.quant.fixed_point import quantized_multiplier
from qbench.quant.rescaling import divide_by_power, doubling_high_multiply, rescale

Integers = NDArray[np.int64]

ACCUMULATED_BITS = 12
"""Sums of exponentials are Q12 numbers."""


@dataclass(frozen=True, kw_only=True)
class _Softmax(InternalOp):
    operands = ("data", "exponentials")
    dtype: DType
    axis: int = -1

    def infer(self, data: TensorType, exponentials: TensorType) -> TensorType:
        axis_within(self, self.axis, data.rank)
        low, high = integer_range(data.dtype)
        require(
            exponentials.shape == (high - low + 1,), f"{self.name}: a table for {data} has {high - low + 1} entries"
        )
        return data.with_dtype(self.dtype)

    def _looked_up(self, data: Array, exponentials: Array) -> Integers:
        wide = data.astype(np.int64)
        return exponentials.astype(np.int64)[wide.max(axis=self.axis, keepdims=True) - wide]


@register
class TfliteSoftmax(_Softmax):
    """Softmax of 8-bit integers: ``exponentials[maximum - data]`` over their sum, in units of 2^-8 or 2^-16.

    The table holds Q0 numbers; see tensorflow/lite/kernels/internal/reference/softmax.h.
    """

    name = "integer.tflite_softmax"

    def compute(self, data: Array, exponentials: Array) -> Array:
        powers = self._looked_up(data, exponentials)
        sums = divide_by_power(powers, ACCUMULATED_BITS).sum(axis=self.axis, keepdims=True)
        scale, bits = reciprocal(sums, ACCUMULATED_BITS)
        low, high = integer_range(self.dtype)
        right = bits + 31 - (high - low + 1).bit_length() + 1
        return saturate(divide_by_power(doubling_high_multiply(powers, scale), right) + low, self.dtype)


@register
class TfliteSoftmaxInt16(_Softmax):
    """Softmax of 16-bit integers, in units of 2^-15; the table holds such numbers too."""

    name = "integer.tflite_softmax_int16"

    def compute(self, data: Array, exponentials: Array) -> Array:
        powers = self._looked_up(data, exponentials)
        sums = powers.sum(axis=self.axis, keepdims=True)
        require(bool(np.all(sums < 2**31)), f"{self.name}: a sum of exponentials does not fit into 32 bits")
        headroom = 32 - np.frexp(sums.astype(np.float64))[1].astype(np.int64)
        shifted = ((sums << (headroom - 1)) + (1 << 13)) >> 14
        place = np.clip(shifted - ((1 << 15) + (1 << 16)), -(2**15), 2**15 - 1)
        right = 31 - headroom
        scaled = (powers * interpolated(place, reciprocals()) + (np.int64(1) << (right - 1))) >> right
        return scaled.clip(0, 2**15 - 1).astype(np.int16)


@cache
def reciprocals() -> Integers:
    """1 / (1 + x) for x in [0, 1], in units of 2^-15: int64[513]."""
    unit = 1 / (2**16 - 1)
    return sampled(lambda x: 1 / (1 + x), (unit, -(2**15)), (2 * unit, 0), np.float64)


def exponents(scale: float, beta: float) -> tuple[Integers, int, int, int]:
    """The argument of the exponential for each 8-bit difference from the maximum, 0 to -255, as Q5 numbers.

    Returns
    -------
    arguments
        In int64; meaningless behind the last difference that counts.
    count
        How many differences count: the others' exponentials are nothing.
    mantissa, shift
        Of the multiplication that made them.
    """
    real = min(float(np.float32(beta)) * float(np.float32(scale)) * 2.0**26, 2.0**31 - 1)
    if real <= 1:
        raise GraphError(f"TFLite's softmax needs a scale above {2.0**-26 / beta}, not {scale}")
    mantissa, shift = (int(part) for part in quantized_multiplier(real))
    count = int(31 * 2.0**26 / 2.0**shift) + 1
    differences = -np.arange(min(count, 256), dtype=np.int64)
    return doubling_high_multiply(differences << shift, mantissa), min(count, 256), mantissa, shift


def softmax_table(source: QParams, beta: float) -> NDArray[np.int32]:
    """``exp(-difference * scale * beta)`` for differences of 0 to 255, as Q0 numbers."""
    arguments, count, _, _ = exponents(source.scales[0], beta)
    return np.pad(exp_of_negative(arguments), (0, 256 - count)).astype(np.int32)


def softmax_table_int16(source: QParams, beta: float) -> NDArray[np.int16]:
    """The same for differences of 0 to 65535, in units of 2^-15, by interpolation of a table over [-10, 0]."""
    unit = 1 / (2**16 - 1)
    table = sampled(np.exp, (10 * unit, 2**15 - 1), (2 * unit, 0), np.float64)
    factor = float(np.float32(source.scales[0]) * np.float32(beta)) / (10.0 / 65535.0)
    mantissa, shift = quantized_multiplier(factor)
    scaled = rescale(-np.arange(2**16, dtype=np.int64), mantissa, shift, "tflite_double")
    return interpolated(np.clip(scaled + 2**15 - 1, -(2**15), 2**15 - 1), table).astype(np.int16)
