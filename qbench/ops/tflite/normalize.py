"""TFLite's L2 normalization in integers."""

import numpy as np

from qbench.ir.dtypes import DType, integer_range
from qbench.ir.op import Array, register
from qbench.ir.types import TensorType
from qbench.ops.integer.requantize import saturate
from qbench.ops.rules import InternalOp, axis_within, require
from qbench.quant.fixed_functions import reciprocal_square_root
from qbench.quant.rescaling import rescale

LEAST_NORM = 1e-6
"""What LiteRT divides a vector of real numbers by at least."""


@register
class TfliteL2Normalize(InternalOp):
    """Each vector along an axis divided by its Euclidean norm, in units of 2^-7."""

    name = "integer.tflite_l2_normalize"
    dtype: DType
    axis: int = -1
    data_zero_point: int = 0

    @property
    def left(self) -> int:
        """Bits that data is shifted left by before it is multiplied."""
        return 0 if self.dtype == "int8" else 7

    @property
    def more(self) -> int:
        """Bits that products are shifted left by."""
        return 7 - self.left

    def infer(self, data: TensorType) -> TensorType:
        axis_within(self, self.axis, data.rank)
        require(data.dtype in ("int8", "uint8"), f"{self.name} takes 8-bit data, not {data}")
        return data.with_dtype(self.dtype)

    def compute(self, data: Array) -> Array:
        x = data.astype(np.int64) - self.data_zero_point
        mantissa, shift = reciprocal_square_root((x * x).sum(axis=self.axis, keepdims=True))
        low, high = integer_range(self.dtype)
        scaled = rescale(x << self.left, mantissa, shift + self.more, "tflite_double")
        return saturate(scaled + (low + high + 1) // 2, self.dtype)
