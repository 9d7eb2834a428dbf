"""TFLite's logarithm of softmax in integers."""

import numpy as np

from qbench.ir.dtypes import DType, integer_range
from qbench.ir.op import Array, register
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ops.integer.requantize import saturate
from qbench.ops.rules import InternalOp, axis_within, require
from qbench.ops.tflite.softmax import ACCUMULATED_BITS, exponents
from qbench.quant.fixed_functions import exp_of_negative, log_of_q12
from qbench.quant.fixed_point import quantized_multiplier
from qbench.quant.rescaling import divide_by_power, rescale


@register
class TfliteLogSoftmax(InternalOp):
    """``arguments[d] - log(sum of exp)`` in units of 2^-4, d being the maximum less the data; 0 is the largest integer.

    `exponentials` holds Q0 numbers and `arguments` their logarithms as Q5 numbers, for differences of 0 to 255. See
    tensorflow/lite/kernels/internal/reference/log_softmax.h.
    """

    name = "integer.tflite_log_softmax"
    operands = ("data", "exponentials", "arguments")
    dtype: DType
    axis: int = -1
    count: int
    """Differences from here on give the smallest integer."""
    mantissa: int
    shift: int
    """From Q5 numbers back to differences."""

    def infer(self, data: TensorType, exponentials: TensorType, arguments: TensorType) -> TensorType:
        axis_within(self, self.axis, data.rank)
        fits = exponentials.shape == arguments.shape == (256,) and data.dtype in ("int8", "uint8")
        require(fits, f"{self.name} takes 8-bit data and tables of 256 entries, not {data}")
        return data.with_dtype(self.dtype)

    def compute(self, data: Array, exponentials: Array, arguments: Array) -> Array:
        wide = data.astype(np.int64)
        difference = wide.max(axis=self.axis, keepdims=True) - wide
        powers = divide_by_power(exponentials.astype(np.int64)[difference], ACCUMULATED_BITS)
        log_of_sum = log_of_q12(powers.sum(axis=self.axis, keepdims=True))
        least = rescale(log_of_sum - 2**31, np.asarray(self.mantissa), np.asarray(self.shift), "tflite_double")
        low, high = integer_range(self.dtype)
        steps = divide_by_power(arguments.astype(np.int64)[difference] - log_of_sum, 22) + high
        return saturate(np.where(-difference > np.maximum(-self.count, least), steps, low), self.dtype)


def tflite_log_softmax(source: QParams, dtype: DType, axis: int) -> tuple[TfliteLogSoftmax, dict[str, Array]]:
    """The op for an input with these qparams, and its constants."""
    arguments, count, mantissa, shift = exponents(source.scales[0], 1.0)
    back, right = quantized_multiplier(2.0 ** (31 - shift) / mantissa)
    op = TfliteLogSoftmax(dtype=dtype, axis=axis, count=count, mantissa=int(back), shift=int(right))
    behind = (0, 256 - count)
    return op, {
        "exponentials": np.pad(exp_of_negative(arguments), behind).astype(np.int32),
        "arguments": np.pad(arguments, behind).astype(np.int32),
    }
