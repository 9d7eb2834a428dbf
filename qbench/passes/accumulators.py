"""What accumulates in an integer sum of products: its scale, its type, and the bias added to it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from qbench.ir.graph import Graph, Node
from qbench.ir.op import Array, bind
from qbench.ir.qparams import QParams
from qbench.ops.float.pool import AvgPool2d
from qbench.ops.numeric.exact import Accumulator
from qbench.ops.numeric.windows import pool_counts
from qbench.quant.semantics import Semantics

__all__ = [
    "accumulator_dtype",
    "accumulator_qparams",
    "averaged_axes",
    "denominator",
    "largest_product_sum",
    "product_qparams",
    "quantized_bias",
    "reach",
]

_LIMIT = 2**31 - 1


def accumulator_qparams(data: QParams, weight: QParams, axis: int | None, dtype: Accumulator = "int32") -> QParams:
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


def product_qparams(
    semantics: Semantics | None, op: str, data: QParams, weight: QParams, axis: int | None, out: QParams
) -> QParams:
    """qparams of the sums of products that a qnn op makes, to the last bit that a runtime's rounding depends on.

    TFLite multiplies the two scales in float64, but in float32 for uint8 convolutions and matrix products; elementwise
    it computes the whole multiplier in float32.
    """
    if semantics != "tflite" or weight.axis is not None:
        return accumulator_qparams(data, weight, axis)
    product = np.float32(data.scales[0]) * np.float32(weight.scales[0])
    if op == "qnn.multiply":
        return QParams(float(product / np.float32(out.scales[0])) * out.scales[0], 0, "int32")
    if op == "qnn.batch_matmul" or (data.dtype == "uint8" and op != "qnn.dense"):
        return QParams(float(product), 0, "int32")
    return accumulator_qparams(data, weight, axis)


def quantized_bias(bias: Array, sums: QParams) -> NDArray[np.int64]:
    """The bias in units of the sums' scale, rounded half to even; int64 and as large as it gets."""
    scales = np.asarray(sums.scales, np.float64)
    limit = float(2**52)  # beyond this float64 would not be exact; no output survives such a bias unsaturated
    return np.clip(np.rint(bias.astype(np.float64) / scales), -limit, limit).astype(np.int64)


def averaged_axes(graph: Graph, node: Node) -> tuple[int, ...]:
    """The axes that an average pool or mean sums over, counted from the front."""
    rank = graph.types[node.inputs[0]].rank
    return tuple(axis % rank for axis in getattr(bind(node), "axes", (2, 3)))


def denominator(graph: Graph, node: Node) -> int:
    """What the sums of an average are divided by: a multiple of the sizes of all windows, which differ at borders."""
    shape, declared = graph.types[node.inputs[0]].shape, bind(node)
    if isinstance(declared, AvgPool2d):
        counts = pool_counts((int(shape[2]), int(shape[3])), declared.window, declared.count_include_pad)
        return math.lcm(*(int(elements) for elements in np.unique(counts)))
    return math.prod(int(shape[axis]) for axis in averaged_axes(graph, node))


def reach(q: QParams) -> int:
    """The largest distance of an integer from the zero point, of qparams per tensor."""
    return max(q.qmax - q.zero_points[0], q.zero_points[0] - q.qmin)


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
    largest = reach(data)
    if constant is None:
        return largest * depth * reach(weight)
    shape = [-1 if axis == weight.axis else 1 for axis in range(constant.ndim)]
    zero_points = np.asarray(weight.zero_points, np.int64)
    centred = constant.astype(np.int64) - (zero_points.reshape(shape) if weight.axis is not None else zero_points[0])
    return largest * np.abs(centred).reshape(constant.shape[0], -1).sum(axis=1)


def accumulator_dtype(products: NDArray[np.int64] | int, bias: NDArray[np.int64] | None) -> Accumulator:
    """int32 where no sum can leave it, else int64: sums never wrap around."""
    total = np.asarray(products) + (0 if bias is None else np.abs(bias))
    return "int32" if int(np.max(total, initial=0)) <= _LIMIT else "int64"
