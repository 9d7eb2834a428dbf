"""What accumulates in an integer sum of products: its scale, its type, and the bias added to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from qbench.ir.dtypes import DType
from qbench.ir.op import Array
from qbench.ir.qparams import QParams

__all__ = ["accumulator_dtype", "accumulator_qparams", "largest_product_sum", "quantized_bias"]

_LIMIT = 2**31 - 1


def accumulator_qparams(data: QParams, weight: QParams, axis: int | None, dtype: DType = "int32") -> QParams:
    """qparams of sums of products of two quantized tensors: scales multiply, the zero point is 0.

    Parameters
    ----------
    data
        Per tensor.
    weight
        Per tensor, or per axis: then the sums have a scale per index of `axis`.
    axis
        The channel axis of the sums.
    dtype
        Type of the sums.
    """
    scales = tuple(data.scales[0] * scale for scale in weight.scales)
    if weight.axis is None:
        return QParams(scales[0], 0, dtype)
    return QParams(scales, (0,) * len(scales), dtype, axis)


def quantized_bias(bias: Array, sums: QParams) -> NDArray[np.int64]:
    """The bias in units of the sums' scale, rounded half to even; int64 and as large as it gets."""
    scales = np.asarray(sums.scales, np.float64)
    limit = float(2**52)  # beyond this float64 would not be exact; no output survives such a bias unsaturated
    return np.clip(np.rint(bias.astype(np.float64) / scales), -limit, limit).astype(np.int64)


def largest_product_sum(data: QParams, weight: QParams, constant: Array | None, depth: int) -> NDArray[np.int64] | int:
    """A bound on the absolute sum of products, per channel (axis 0 of the constant) or for all.

    Parameters
    ----------
    data, weight
        qparams of the two factors.
    constant
        The integers of the weight, channels first; None where it is not constant.
    depth
        How many products are summed, where there is no constant to look at.
    """
    largest = max(data.qmax - data.zero_points[0], data.zero_points[0] - data.qmin)
    if constant is None:
        return largest * depth * max(weight.qmax - weight.zero_points[0], weight.zero_points[0] - weight.qmin)
    shape = [-1 if axis == weight.axis else 1 for axis in range(constant.ndim)]
    zero_points = np.asarray(weight.zero_points, np.int64)
    centred = constant.astype(np.int64) - (zero_points.reshape(shape) if weight.axis is not None else zero_points[0])
    return largest * np.abs(centred).reshape(constant.shape[0], -1).sum(axis=1)


def accumulator_dtype(products: NDArray[np.int64] | int, bias: NDArray[np.int64] | None) -> DType:
    """int32 where no sum can leave it, else int64: sums never wrap around."""
    total = np.asarray(products) + (0 if bias is None else np.abs(bias))
    return "int32" if int(np.max(total, initial=0)) <= _LIMIT else "int64"
