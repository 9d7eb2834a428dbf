"""The element types of tensors, by name, and what NumPy calls them."""

from functools import cache
from typing import Literal, TypeGuard, get_args

import ml_dtypes
import numpy as np

from qbench.errors import GraphError

DType = Literal[
    "bool", "int4", "uint4", "int8", "uint8", "int16", "uint16", "int32", "int64", "float16", "bfloat16", "float32"
]
DTYPES: tuple[DType, ...] = get_args(DType)

_EXTENDED = {"int4": ml_dtypes.int4, "uint4": ml_dtypes.uint4, "bfloat16": ml_dtypes.bfloat16}
_NUMPY: dict[DType, np.dtype[np.generic]] = {name: np.dtype(_EXTENDED.get(name, name)) for name in DTYPES}
_NAMES: dict[np.dtype[np.generic], DType] = {dtype: name for name, dtype in _NUMPY.items()}


def is_dtype(name: str) -> TypeGuard[DType]:
    """Whether `name` is one of qbench's element types."""
    return name in DTYPES


def numpy_dtype(name: DType) -> np.dtype[np.generic]:
    """The NumPy dtype (from ml_dtypes for int4, uint4 and bfloat16) of an element type."""
    return _NUMPY[name]


def dtype_of(dtype: np.dtype[np.generic]) -> DType:
    """The element type's name of a NumPy dtype; GraphError where qbench has none (float64, strings...)."""
    try:
        return _NAMES[dtype]
    except KeyError:
        raise GraphError(f"NumPy dtype {dtype} is not an element type of the IR ({', '.join(DTYPES)})") from None


def is_float(name: DType) -> bool:
    """Whether the type holds real numbers."""
    return name in ("float16", "bfloat16", "float32")


def is_integer(name: DType) -> bool:
    """Whether the type holds integers (bool is neither)."""
    return name.startswith(("int", "uint"))


@cache
def integer_range(name: DType) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    if not is_integer(name):
        raise GraphError(f"{name} is not an integer type")
    info = ml_dtypes.iinfo(_NUMPY[name])
    return int(info.min), int(info.max)
