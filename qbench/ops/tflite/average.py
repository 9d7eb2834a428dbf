"""TFLite's averages: mean and sum by one multiplier, and a pool that divides integers as they stand."""

import numpy as np

from qbench.errors import GraphError
from qbench.ir.dtypes import DType
from qbench.ir.op import Array, Epilogue, QuantRule, register
from qbench.ir.qparams import QParams
from qbench.ir.types import TensorType, dim_factors
from qbench.ops.float.pool import Pool2d
from qbench.ops.float.reduce import Sum
from qbench.ops.integer.requantize import saturate
from qbench.ops.numeric.windows import pool_counts, pool_sum
from qbench.ops.rules import InternalOp
from qbench.quant.fixed_point import quantized_multiplier
from qbench.quant.rescaling import rescale


@register
class TfliteMean(InternalOp):
    """``rescale(sum(data - data_zero_point)) + zero_point``, saturated."""

    name = "integer.tflite_mean"
    form_of = "mean"
    absorbs = (Epilogue.CLAMP,)
    dtype: DType
    axes: tuple[int, ...]
    keepdims: bool = True
    data_zero_point: int = 0
    zero_point: int = 0
    mantissa: int
    shift: int
    unsigned: bool = False
    """Data and result are int8, but their bytes are read, clamped and written as uint8: so LiteRT 2.3 sums int8."""

    def infer(self, data: TensorType) -> TensorType:
        return Sum(axes=self.axes, keepdims=self.keepdims).infer(data).with_dtype(self.dtype)

    def compute(self, data: Array) -> Array:
        data = data.view(np.uint8) if self.unsigned else data
        sums = (data.astype(np.int64) - self.data_zero_point).sum(axis=self.axes, keepdims=self.keepdims)
        scaled = rescale(sums, np.asarray(self.mantissa), np.asarray(self.shift), "tflite_double")
        made = saturate(scaled + self.zero_point, "uint8" if self.unsigned else self.dtype)
        return made.view(np.int8) if self.unsigned else made


def tflite_sum(source: QParams, target: QParams, axes: tuple[int, ...], keepdims: bool) -> TfliteMean:
    """The sum of 8-bit integers of these qparams, or of 16-bit ones at the scale that they have."""
    if {source.dtype, target.dtype} not in ({"int8"}, {"uint8"}) and (source.dtype != "int16" or source != target):
        raise GraphError(f"TFLite sums 8-bit integers of one type, not {source.dtype} to {target.dtype}")
    mantissa, shift = (int(part) for part in quantized_multiplier(source.scales[0] / target.scales[0]))
    return TfliteMean(
        dtype=target.dtype,
        axes=axes,
        keepdims=keepdims,
        data_zero_point=source.zero_points[0],
        zero_point=target.zero_points[0],
        mantissa=mantissa,
        shift=shift,
        unsigned=target.dtype == "int8",
    )


def tflite_mean(
    source: QParams, target: QParams, data: TensorType, axes: tuple[int, ...], keepdims: bool
) -> TfliteMean:
    """The mean of a tensor of that type and these qparams."""
    count = 1
    for axis in axes:
        size, symbol = dim_factors(data.shape[axis])
        if symbol is not None:
            raise GraphError(f"TFLite's mean needs to know size {axis} of {data}")
        count *= size
    mantissa, shift = (int(part) for part in quantized_multiplier(source.scales[0] / target.scales[0]))
    spare = max(min(count.bit_length() - 1, 32, 31 + shift), 0)
    return TfliteMean(
        dtype=target.dtype,
        axes=axes,
        keepdims=keepdims,
        data_zero_point=source.zero_points[0],
        zero_point=target.zero_points[0],
        mantissa=(mantissa << spare) // count,
        shift=shift - spare,
    )


@register
class TfliteAvgPool2d(Pool2d):
    """``(sum +- count / 2) / count``, truncated, over the elements of each window that are not padding.

    Zero points do not matter where ties go up; here they do: ties go away from the integer 0, whatever it stands for.
    """

    name = "integer.tflite_avg_pool2d"
    form_of = "nn.avg_pool2d"
    absorbs = (Epilogue.CLAMP,)
    rule = QuantRule.INTERNAL

    def compute(self, data: Array) -> Array:
        sums = pool_sum(data.astype(np.int64), self.window)
        counts = pool_counts((data.shape[2], data.shape[3]), self.window, False)
        away = (np.abs(sums) + counts // 2) // counts
        return (np.sign(sums) * away).astype(data.dtype)
