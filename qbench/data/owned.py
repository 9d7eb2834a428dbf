"""Arrays that nobody else can write into, side by side in memory, so that joining them costs nothing."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from qbench.errors import DataError


def owned(data: object) -> object:
    """The same with arrays that nobody else can write into; DataError where some of their values are masked."""
    if isinstance(data, np.ndarray):
        array = unmasked(cast("NDArray[Any]", data), "data")
        if array.flags.writeable or not array.flags.c_contiguous:
            array = np.array(array, order="C", copy=True)
            array.flags.writeable = False
        return array
    if isinstance(data, Mapping):
        return {name: owned(value) for name, value in cast("Mapping[Any, object]", data).items()}
    if isinstance(data, (list, tuple)):
        return _side_by_side([*cast("Sequence[object]", data)])
    return data


def unmasked(array: NDArray[Any], what: str) -> NDArray[Any]:
    """The same array; DataError where some of its values are masked: nobody would look at the mask."""
    if np.ma.is_masked(array):
        raise DataError(f"{what} is masked in places; give numbers for them, as x.filled(0) does")
    return array


def _side_by_side(items: list[object]) -> list[object]:
    """Items that nobody else can write into, arrays of one kind one behind the other in memory: `joined` is free."""
    if items and all(isinstance(item, np.ndarray) and item.ndim for item in items):
        arrays = cast("list[NDArray[Any]]", items)
        if not any(map(np.ma.is_masked, arrays)) and len({(array.dtype, array.shape[1:]) for array in arrays}) == 1:
            block = np.concatenate(arrays)
            block.flags.writeable = False
            return [*np.split(block, np.cumsum([len(array) for array in arrays[:-1]]))]
    if items and all(isinstance(item, Mapping) for item in items):
        mappings = cast("list[Mapping[Any, object]]", items)
        names = mappings[0].keys()
        if all(mapping.keys() == names for mapping in mappings):
            columns = [_side_by_side([mapping[name] for mapping in mappings]) for name in names]
            return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
    return [owned(item) for item in items]


def joined(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Arrays one behind the other along axis 0: a view where they lie so in one array already."""
    first, base = arrays[0], arrays[0].base
    if first.size and isinstance(base, np.ndarray) and base.flags.c_contiguous and base.dtype == first.dtype:
        place = begin = first.ctypes.data
        for array in arrays:
            if array.base is not base or array.ctypes.data != place or not array.flags.c_contiguous:
                break
            place += array.nbytes
        else:
            start = (begin - base.ctypes.data) // first.itemsize
            size = sum(array.size for array in arrays)
            return base.reshape(-1)[start : start + size].reshape(-1, *first.shape[1:])
    return np.concatenate(arrays)
