"""What accumulates in an integer sum of products: its scale, its type, and the bias added to it."""

import math

import numpy as np
from numpy.typing import NDArray

from qbench.ir.op import Array, Op
from qbench.ir.qparams import QParams
from qbench.ir.types import Dim, TensorType, dim_product
from qbench.ops.float.pool import AvgPool2d
from qbench.ops.numeric.exact import Accumulator
from qbench.ops.numeric.windows import pool_counts
from qbench.quant.semantics import Semantics

WIDENING = 2**8
"""A bias that follows no sum of products is added in units 256 times finer than its input's scale."""

_LIMIT = 2**31 - 1


def accumulator_qparams(data: QParams, weight: QParams, axis: int | None) -> QParams:
    """qparams of sums of products of two quantized tensors: scales multiply, the zero point is 0.

    Parameters
    ----------
    data
        Per tensor.
    weight
        Per tensor, or per axis: then the sums have a scale per index of `axis`.
    axis
        The channel axis of the sums.
    """
    scales = tuple(data.scales[0] * scale for scale in weight.scales)
    if weight.axis is None:
        return QParams(scales[0], 0, "int32")
    return QParams(scales, (0,) * len(scales), "int32", axis)


def sums_axis(op: Op, weight: QParams, rank: int, weight_rank: int) -> int | None:
    """The axis along which sums of products may have a scale each.

    Parameters
    ----------
    op
        A float or qnn op; of a product of two tensors the weight's own axis decides.
    weight
        qparams of the second factor.
    rank, weight_rank
        Of the sums and of that factor.
    """
    axis = op.channel_axis_of("output", rank)
    return weight.axis + rank - weight_rank if axis is None and weight.axis is not None else axis


def product_qparams(
    semantics: Semantics | None, op: str, data: QParams, weight: QParams, axis: int | None, out: QParams | None
) -> QParams:
    """qparams of the sums of products that a qnn op makes, to the last bit that a runtime's rounding depends on.

    TFLite multiplies the two scales in float64, but in float32 for uint8 convolutions and matrix products; elementwise
    it computes the whole multiplier to the scale of the result in float32.
    """
    if semantics != "tflite" or weight.axis is not None:
        return accumulator_qparams(data, weight, axis)
    product = np.float32(data.scales[0]) * np.float32(weight.scales[0])
    if op == "qnn.multiply" and out is not None:
        return QParams(float(product / np.float32(out.scales[0])) * out.scales[0], 0, "int32")
    if op == "qnn.batch_matmul" or (data.dtype == "uint8" and op != "qnn.dense"):
        return QParams(float(product), 0, "int32")
    return accumulator_qparams(data, weight, axis)


def bias_units(*factors: QParams) -> QParams:
    """What a bias is stored in: the scale of the products of two factors, or a 256th of that of a lone input."""
    if len(factors) == 1:
        return QParams(factors[0].scales[0] / WIDENING, 0, "int32")
    data, weight = sorted(factors, key=lambda q: q.axis is not None)
    return accumulator_qparams(data, weight, 0)


def quantized_bias(bias: Array, sums: QParams) -> NDArray[np.int64]:
    """The bias in units of the sums' scale, rounded half to even; int64 and as large as it gets."""
    scales = np.asarray(sums.scales, np.float64)
    limit = float(2**52)  # beyond this float64 would not be exact; no output survives such a bias unsaturated
    return np.clip(np.rint(bias.astype(np.float64) / scales), -limit, limit).astype(np.int64)


def averaged_axes(op: Op, rank: int) -> tuple[int, ...]:
    """The axes that an average pool or mean sums over, counted from the front."""
    return tuple(axis % rank for axis in getattr(op, "axes", (2, 3)))


def denominator(op: Op, shape: tuple[Dim, ...]) -> Dim | None:
    """What the sums of an average are divided by: a multiple of the sizes of all its windows.

    None where that is not known until all sizes are, as windows at a border have fewer elements.
    """
    if isinstance(op, AvgPool2d):
        if not op.ceil_mode and (op.count_include_pad or not any(op.padding)):
            return math.prod(op.pool_size)
        if not all(isinstance(size, int) for size in shape[2:]):
            return None
        counts = pool_counts((int(shape[2]), int(shape[3])), op.window, op.count_include_pad)
        return math.lcm(*(int(elements) for elements in np.unique(counts)))
    return dim_product(shape[axis] for axis in averaged_axes(op, len(shape)))


def reach(q: QParams) -> int:
    """The largest distance of an integer from its zero point."""
    return max(q.qmax - min(q.zero_points), max(q.zero_points) - q.qmin)


def largest_sum(
    op: Op, data: QParams, weight: QParams, types: tuple[TensorType, TensorType], array: Array | None
) -> NDArray[np.int64]:
    """A bound on the absolute sum of products that an op makes, per channel or for all.

    Parameters
    ----------
    op
        A float or qnn op.
    data, weight
        qparams of the two factors.
    types
        Of both, in the op's order.
    array
        The integers of the weight, where it is constant.
    """
    axis = op.channel_axis_of("weight", types[1].rank)
    if array is None or axis is None:
        return np.asarray(reach(data) * max(1, op.depth(*types)) * reach(weight))
    shape = [-1 if i == weight.axis else 1 for i in range(array.ndim)]
    centred = array.astype(np.int64) - np.asarray(weight.zero_points, np.int64).reshape(shape)
    return reach(data) * np.abs(centred).sum(axis=tuple(i for i in range(array.ndim) if i != axis))


def accumulator_dtype(products: NDArray[np.int64] | int, bias: NDArray[np.int64] | None) -> Accumulator:
    """int32 where no sum can leave it, else int64: sums never wrap around."""
    total = np.asarray(products) + (0 if bias is None else np.abs(bias))
    return "int32" if int(np.max(total, initial=0)) <= _LIMIT else "int64"
