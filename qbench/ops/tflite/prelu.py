"""TFLite's PReLU: one multiplier for what is at least zero, another for products with slopes."""

import numpy as np

from qbench.ir.dtypes import DType
from qbench.ir.op import Array, register
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType
from qbench.ops.integer.requantize import saturate
from qbench.ops.rules import InternalOp, broadcast, require
from qbench.quant.fixed_point import quantized_multiplier
from qbench.quant.rescaling import rescale


@register
class TflitePrelu(InternalOp):
    """``rescale(x)`` where x is at least 0, else ``rescale(x * slope)``, both less their zero points."""

    name = "integer.tflite_prelu"
    operands = ("data", "slope")
    dtype: DType
    zero_points: tuple[int, int]
    """Of data and slope."""
    zero_point: int = 0
    """Of the result."""
    mantissa: tuple[int, int]
    """For what is at least zero, and for the products."""
    shift: tuple[int, int]

    def infer(self, data: TensorType, slope: TensorType) -> TensorType:
        fits = broadcast(self, data.shape, slope.shape) == data.shape
        require(fits, f"{self.name}: slopes {slope} do not broadcast to {data}")
        return data.with_dtype(self.dtype)

    def compute(self, data: Array, slope: Array) -> Array:
        x, a = data.astype(np.int64) - self.zero_points[0], slope.astype(np.int64) - self.zero_points[1]
        above, below = (
            rescale(values, np.asarray(mantissa), np.asarray(shift), "tflite_double")
            for values, mantissa, shift in zip((x, x * a), self.mantissa, self.shift, strict=True)
        )
        return saturate(np.where(x >= 0, above, below) + self.zero_point, self.dtype)


def tflite_prelu(source: QParams, slope: QParams, target: QParams) -> TflitePrelu:
    """The op for tensors of these qparams, each of one scale; ratios are rounded to float32, as TFLite does."""
    scale, steps, out = (np.float32(q.scales[0]) for q in (source, slope, target))
    mantissa, shift = quantized_multiplier([float(scale / out), float(scale * steps / out)])
    return TflitePrelu(
        dtype=target.dtype,
        zero_points=(source.zero_points[0], slope.zero_points[0]),
        zero_point=target.zero_points[0],
        mantissa=(int(mantissa[0]), int(mantissa[1])),
        shift=(int(shift[0]), int(shift[1])),
    )
