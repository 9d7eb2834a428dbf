"""Reading qparams: what a scale and a zero point of an ONNX file say about a tensor."""

import numpy as np

from qbench.errors import ModelError, QParamsError, shown
from qbench.frontends.onnx.builder import Unsupported, Value
from qbench.frontends.onnx.source import SourceNode
from qbench.ir.dtypes import DType, is_dtype, is_integer
from qbench.ir.qparams import QParams


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
    if scale is None:
        raise ModelError(f"node {node}: {shown(tensor)} has no scale")
    scales, zeros = _constant(node, tensor, "scale", scale), None
    if scale.dtype not in ("float32", "float16", "bfloat16"):
        raise ModelError(f"node {node}: the scale {shown(scale.name)} of {shown(tensor)} is {scale.dtype}, not a float")
    if zero_point is not None:
        if zero_point.dtype != dtype:
            raise ModelError(
                f"node {node}: the zero point {shown(zero_point.name)} of {shown(tensor)} is {zero_point.dtype}, "
                f"but the tensor is {dtype}"
            )
        zeros = _constant(node, tensor, "zero point", zero_point)
        if zeros.size not in (1, scales.size):
            raise ModelError(f"node {node}: {shown(tensor)} has {scales.size} scales but {zeros.size} zero points")
    if node.integer("block_size", 0) or (scales.ndim > 1 and scales.size > 1):
        raise Unsupported(
            f"{shown(tensor)} has blocked scales; one scale, or one for each index of an axis, is supported"
        )
    where = None
    if scales.ndim == 1 and scales.size != 1:
        if axis is None:
            raise Unsupported(f"{shown(tensor)} has {scales.size} scales, but {node.op} takes one for the whole tensor")
        if not -data.rank <= axis < data.rank:
            raise ModelError(f"node {node}: axis {axis} is outside {shown(tensor)}, which has {data.rank} dimensions")
        where = axis % data.rank
        if data.shape[where] != scales.size:
            raise ModelError(
                f"node {node}: {shown(tensor)} has {scales.size} scales, "
                f"but axis {where} has the size {data.shape[where]}"
            )
    elif scales.size != 1:
        raise ModelError(f"node {node}: {shown(tensor)} has {scales.size} scales")
    steps = [float(step) for step in scales.ravel().astype(np.float32)]
    offsets = [0] * len(steps) if zeros is None else [int(zero) for zero in zeros.ravel().astype(np.int64)]
    offsets *= len(steps) // len(offsets)
    try:
        if where is None:
            return QParams(steps[0], offsets[0], dtype)
        return QParams(tuple(steps), tuple(offsets), dtype, where)
    except QParamsError as error:
        raise ModelError(f"node {node}: {shown(tensor)}: {error}") from None


def _constant(
    node: SourceNode, tensor: str, what: str, value: Value
) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    array = value.stored.reals if value.stored is not None else value.constant
    if array is None:
        raise Unsupported(f"the {what} {shown(value.name)} of {shown(tensor)} is computed at run time")
    return np.asarray(array)
