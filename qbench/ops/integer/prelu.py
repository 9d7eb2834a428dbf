"""PReLU of integers that are too wide for a table of each channel."""

import numpy as np
from numpy.typing import NDArray

from qbench.errors import GraphError
from qbench.ir.dtypes import DType
from qbench.ir.op import Array, register
from qbench.ir.types import TensorType
from qbench.ops.float.dense import channelwise
from qbench.ops.integer.requantize import saturate
from qbench.ops.rules import InternalOp
from qbench.quant.fixed_point import quantized_multiplier
from qbench.quant.rescaling import rescale


@register
class IntegerPrelu(InternalOp):
    """The input less its zero point, times one multiplier where that is at least 0 and times another below."""

    name = "integer.prelu"
    operands = ("data", "mantissa", "shift")
    elementwise = True
    dtype: DType
    data_zero_point: int = 0
    zero_point: int = 0
    """Of the result."""
    axis: int | None = None
    """Of the channels, where each has multipliers of its own."""

    def infer(self, data: TensorType, mantissa: TensorType, shift: TensorType) -> TensorType:
        wanted = (2, 1 if self.axis is None else data.shape[self.axis])
        if mantissa.shape != wanted or shift.shape != wanted:
            raise GraphError(f"multipliers for {data} have shape {wanted}, not {mantissa.shape} and {shift.shape}")
        return data.with_dtype(self.dtype)

    def compute(self, data: Array, mantissa: Array, shift: Array) -> Array:
        x = data.astype(np.int64) - self.data_zero_point
        if self.axis is not None:
            mantissa, shift = (
                np.stack([channelwise(row, self.axis, x.ndim) for row in rows]) for rows in (mantissa, shift)
            )
        above, below = (rescale(x, m, s, "tflite_single") for m, s in zip(mantissa, shift, strict=True))
        return saturate(np.where(x >= 0, above, below) + self.zero_point, self.dtype)


def prelu_multipliers(ratio: float, slopes: NDArray[np.float32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Mantissas and shifts [2, channels] for a ratio of scales: for what is at least 0, and for what is below.

    Slopes may be negative or zero, which multipliers of requantizes are not: mantissas have their sign.
    """
    reals = ratio * np.stack([np.ones(len(slopes)), slopes.astype(np.float64)])
    mantissa, shift = quantized_multiplier(np.where(reals == 0, 1.0, np.abs(reals)))
    return (np.sign(reals) * mantissa).astype(np.int32), np.where(reals == 0, 0, shift).astype(np.int32)
