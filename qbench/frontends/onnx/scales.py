"""Reading qparams: what a scale and a zero point of an ONNX file say about a tensor."""

import numpy as np

from qbench.errors import ModelError, QParamsError, shown
from qbench.frontends.onnx.builder import Unsupported, Value
from qbench.frontends.onnx.source import SourceNode
from qbench.ir.dtypes import DType, is_dtype, is_integer
from qbench.ir.qparams import QParams

_Constant = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def integer_type(node: SourceNode, tensor: str, dtype: str) -> DType:
    """The element type of quantized data; an error that names the tensor for any other."""
    if dtype.startswith("float8") or dtype in ("float4_e2m1fn", "int2", "uint2"):
        raise Unsupported(f"{shown(tensor)} is quantized to {dtype}; integers of 4 bits and more are supported")
    if not (is_dtype(dtype) and is_integer(dtype)):
        raise ModelError(f"node {node}: {shown(tensor)} is {dtype}, which is no integer type")
    return dtype


def qparams(
    node: SourceNode,
    tensor: str,
    data: Value,
    dtype: DType,
    scale: Value | None,
    zero_point: Value | None,
    axis: int | None = None,
) -> QParams:
    """What the integers of a tensor mean.

    Parameters
    ----------
    node
        The node that says so.
    tensor
        Name of the quantized tensor, for messages.
    data
        A value of the tensor's shape.
    dtype
        Type of the integers.
    scale, zero_point
        Constants; no zero point means 0.
    axis
        The axis that several scales run along, perhaps counted from the end; None where there may be one only.

    Raises
    ------
    ModelError
        Scales that are not positive and finite, zero points of another type or out of range, lengths that do not fit,
        an axis that the tensor does not have. The message names the tensor.
    Unsupported
        Scales that are computed at run time, or blocked.
    """
    scales = _scales(node, tensor, scale)
    zeros = _zero_points(node, tensor, dtype, zero_point, scales.size)
    if node.integer("block_size", 0) or (scales.ndim > 1 and scales.size > 1):
        raise Unsupported(
            f"{shown(tensor)} has blocked scales; one scale, or one for each index of an axis, is supported"
        )
    if scales.ndim != 1 and scales.size != 1:
        raise ModelError(f"node {node}: {shown(tensor)} has {scales.size} scales")
    where = None if scales.size == 1 else _axis(node, tensor, data, scales.size, axis)
    steps = [float(step) for step in scales.ravel().astype(np.float32)]
    offsets = [int(zero) for zero in zeros.ravel().astype(np.int64)]
    offsets *= len(steps) // len(offsets)
    try:
        if where is None:
            return QParams(steps[0], offsets[0], dtype)
        return QParams(tuple(steps), tuple(offsets), dtype, where)
    except QParamsError as error:
        raise ModelError(f"node {node}: {shown(tensor)}: {error}") from None


def _scales(node: SourceNode, tensor: str, scale: Value | None) -> _Constant:
    if scale is None:
        raise ModelError(f"node {node}: {shown(tensor)} has no scale")
    scales = _constant(tensor, "scale", scale)
    if scale.dtype not in ("float32", "float16", "bfloat16"):
        raise ModelError(f"node {node}: the scale {shown(scale.name)} of {shown(tensor)} is {scale.dtype}, not a float")
    return scales


def _zero_points(node: SourceNode, tensor: str, dtype: DType, zero_point: Value | None, count: int) -> _Constant:
    """One, or as many as there are scales."""
    if zero_point is None:
        return np.zeros(1, np.int64)
    if zero_point.dtype != dtype:
        raise ModelError(
            f"node {node}: the zero point {shown(zero_point.name)} of {shown(tensor)} is {zero_point.dtype}, "
            f"but the tensor is {dtype}"
        )
    zeros = _constant(tensor, "zero point", zero_point)
    if zeros.size not in (1, count):
        raise ModelError(f"node {node}: {shown(tensor)} has {count} scales but {zeros.size} zero points")
    return zeros


def _axis(node: SourceNode, tensor: str, data: Value, count: int, axis: int | None) -> int:
    """The axis that so many scales run along, counted from the front."""
    if axis is None:
        raise Unsupported(f"{shown(tensor)} has {count} scales, but {node.op} takes one for the whole tensor")
    if not -data.rank <= axis < data.rank:
        raise ModelError(f"node {node}: axis {axis} is outside {shown(tensor)}, which has {data.rank} dimensions")
    where = axis % data.rank
    if data.shape[where] != count:
        raise ModelError(
            f"node {node}: {shown(tensor)} has {count} scales, but axis {where} has the size {data.shape[where]}"
        )
    return where


def _constant(tensor: str, what: str, value: Value) -> _Constant:
    array = value.stored.reals if value.stored is not None else value.constant
    if array is None:
        raise Unsupported(f"the {what} {shown(value.name)} of {shown(tensor)} is computed at run time")
    return np.asarray(array)
