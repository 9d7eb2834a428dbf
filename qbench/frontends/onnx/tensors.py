"""TensorProtos to arrays, with external data read only from inside the model's folder."""

import math
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from qbench.errors import ModelError, shown
from qbench.frontends.growth import has_damage
from qbench.frontends.onnx.source import Array

_MAX_ELEMENTS = 2**40
_MAPPED = 1 << 20
"""Bytes of a tensor that stays in its file, mapped to memory."""


def read_tensor(proto: TensorProto, folder: Path, what: str) -> Array:
    """The array of a TensorProto.

    Parameters
    ----------
    proto
        Any tensor of an ONNX file.
    folder
        The model's folder, for external data.
    what
        What the tensor is, for messages.

    Raises
    ------
    ModelError
        Sizes that are negative, overflow or do not fit the data; NaN; unsafe external data.
    """
    shape = tuple(proto.dims)
    if any(size < 0 for size in shape) or math.prod(shape) > _MAX_ELEMENTS:
        raise ModelError(f"{what} has the impossible shape {shape}")
    if proto.data_type not in TensorProto.DataType.values() or proto.data_type == TensorProto.UNDEFINED:
        raise ModelError(f"{what} has the unknown element type {proto.data_type}")
    if proto.data_location == TensorProto.EXTERNAL:
        path, offset, length = _external(proto, folder, what)
        try:
            if length >= _MAPPED and offset % 8 == 0 and _bits(proto) >= 8:
                dtype = helper.tensor_dtype_to_np_dtype(proto.data_type)
                return _checked(np.asarray(np.memmap(path, dtype, "r", offset, shape)), shape, what)
            with path.open("rb") as file:
                file.seek(offset)
                inline = TensorProto(dims=shape, data_type=proto.data_type, raw_data=file.read(length))
        except OSError as error:
            raise ModelError(f"{what}: external data cannot be read: {error}") from None
        return read_tensor(inline, folder, what)
    try:
        array = np.asarray(numpy_helper.to_array(proto))
    except (ValueError, TypeError, KeyError, NotImplementedError, OverflowError) as error:
        raise ModelError(f"{what} cannot be read: {error}") from None
    return _checked(array, shape, what)


def _checked(array: Array, shape: tuple[int, ...], what: str) -> Array:
    if array.shape != shape:
        raise ModelError(f"{what} has data for the shape {array.shape}, not {shape}")
    if array.dtype.kind == "c":
        raise ModelError(f"{what} holds complex numbers, which qbench does not know")
    # Infinity may be the open end of a Clip or hide elements from a softmax: the op that reads it decides.
    if has_damage(array):
        raise ModelError(f"{what} contains NaN: the model is damaged, export it again")
    return array


def _external(proto: TensorProto, folder: Path, what: str) -> tuple[Path, int, int]:
    """The file, where in it the tensor begins, and its length."""
    entries = {entry.key: entry.value for entry in proto.external_data}
    try:
        path = _inside(folder, entries["location"])
        offset = int(entries.get("offset", "0"))
        size = path.stat().st_size
        length = int(entries.get("length", size - offset))
        wanted = math.ceil(math.prod(proto.dims) * _bits(proto) / 8)
        if offset < 0 or length != wanted or offset + length > size:
            raise ModelError(
                f"{what}: external data {shown(entries['location'])} has {size} bytes, "
                f"but the tensor needs {wanted} and the model points at {length} from {offset}"
            )
        return path, offset, length
    except KeyError:
        raise ModelError(f"{what}: its external data has no location") from None
    except (OSError, ValueError) as error:
        raise ModelError(f"{what}: external data cannot be read: {error}") from None
    except ModelError as error:
        raise ModelError(f"{what}: {error}" if what not in str(error) else str(error)) from None


def _inside(folder: Path, location: str) -> Path:
    root = folder.resolve()
    path = (root / location).resolve()
    if Path(location).is_absolute() or ".." in Path(location).parts or not path.is_relative_to(root):
        raise ModelError(f"external data {shown(location)} lies outside the model's folder, which is refused")
    if not path.is_file():
        raise ModelError(f"external data {shown(location)} is no file in the model's folder")
    return path


def _bits(proto: TensorProto) -> int:
    if proto.data_type in (TensorProto.INT4, TensorProto.UINT4):
        return 4
    return 8 * helper.tensor_dtype_to_np_dtype(proto.data_type).itemsize
