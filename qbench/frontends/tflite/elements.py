"""Tensors of a TFLite file: element types, buffers and quantization parameters, all checked."""

import math
from collections.abc import Iterable
from typing import Any

from qbench.errors import ModelError, QParamsError, shown
from qbench.frontends.tflite.guard import Budget
from qbench.frontends.tflite.options import array_of
from qbench.frontends.tflite.source import Array
from qbench.ir.bits import signed, unpacked
from qbench.ir.dtypes import is_dtype, is_integer, numpy_dtype
from qbench.ir.qparams import QParams

TYPES = (
    *("float32", "float16", "int32", "uint8", "int64", "string", "bool", "int16", "complex64", "int8", "float64"),
    *("complex128", "uint64", "resource", "variant", "uint32", "uint16", "int4", "bfloat16"),
)
"""Names of the element types by their numbers in the file."""


def read_array(content: Array, name: str, shape: tuple[int, ...], dtype: str, budget: Budget) -> Array:
    """The elements of a constant from the bytes of its buffer."""
    if not is_dtype(dtype):
        raise ModelError(f"tensor {shown(name)} holds {dtype} elements, which qbench does not know")
    if min(shape, default=0) < 0:
        raise ModelError(f"tensor {shown(name)} is a constant, but has the open shape {shape}")
    count = math.prod(shape)
    kind = numpy_dtype(dtype)
    if math.prod(size for size in shape if size) * kind.itemsize >= 2**63:  # NumPy refuses it though one size is 0
        raise ModelError(f"tensor {shown(name)} has the shape {shape}, which is too large")
    halves = dtype == "int4"
    wanted = (count + 1) // 2 if halves else count * kind.itemsize
    if content.size != wanted:
        raise ModelError(
            f"tensor {shown(name)}: shape {shape} of {dtype} takes {wanted} bytes, but its buffer has {content.size}"
        )
    budget.spend(content.size)
    if dtype == "bool":
        return (content != 0).reshape(shape)
    if not halves:
        return content.view(kind).reshape(shape)
    return signed(unpacked(content)[:count]).astype(kind).reshape(shape)


def read_qparams(table: Any, name: str, shape: tuple[int, ...], dtype: str) -> QParams | None:
    """The qparams of an integer tensor; None where the file has no scale for it.

    Parameters
    ----------
    table
        QuantizationParameters, guarded.
    """
    if not is_dtype(dtype) or not is_integer(dtype):
        return None
    if table.DetailsType():
        raise ModelError(f"tensor {shown(name)} is quantized in a custom way, which qbench does not know")
    scales = [float(scale) for scale in _elements(table.ScaleAsNumpy())]
    zero_points = [int(zero) for zero in _elements(table.ZeroPointAsNumpy())]
    if not scales:
        return None
    axis = table.QuantizedDimension()
    if len(zero_points) == 1:
        zero_points *= len(scales)
    try:
        if len(scales) == 1:
            return QParams(scales[0], zero_points[0] if zero_points else 0, dtype)
        if not 0 <= axis < len(shape):
            raise QParamsError(f"it has scales along axis {axis}, but {len(shape)} dimensions")
        if len(scales) != shape[axis]:
            raise QParamsError(f"it has {len(scales)} scales along axis {axis}, whose size is {shape[axis]}")
        return QParams(tuple(scales), tuple(zero_points) or (0,) * len(scales), dtype, axis)
    except QParamsError as error:
        raise ModelError(f"the quantization of tensor {shown(name)} makes no sense: {error}") from None


def _elements(vector: Any) -> Iterable[Any]:
    array = array_of(vector)
    return () if array is None else array
