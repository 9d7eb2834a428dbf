"""Data from files: NumPy archives, arrays, folders of images. Nothing is unpickled."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from qbench.data.arrays import read_arrays
from qbench.data.images import ImageFolder, find_labels, read_labels
from qbench.data.shards import Shards
from qbench.errors import DataError

__all__ = ["Samples", "load_data"]


class Samples(NamedTuple):
    """Data and its labels, in the forms that sessions take: ``Session(..., evaluation=load_data(path))``."""

    x: NDArray[Any] | dict[str, NDArray[Any]] | ImageFolder | Shards
    """One array, arrays by input name, or what is read when it is needed; the first axis counts samples."""
    y: NDArray[Any] | None
    """The class of each sample, or what a metric compares with, where it is known."""


def load_data(
    path: str | os.PathLike[str],
    *,
    mean: float | Sequence[float] = 0.0,
    std: float | Sequence[float] = 1.0,
    size: int | tuple[int, int] | None = None,
    layout: Literal["NCHW", "NHWC"] = "NCHW",
    channels: Literal["RGB", "BGR", "L"] = "RGB",
    dtype: Literal["float32", "uint8"] = "float32",
    classes: bool = True,
) -> Samples:
    """Read samples, and labels where there are any.

    Parameters
    ----------
    path
        An ``.npz`` with ``x`` (or an array for each input of the model, by its name) and optionally ``y``, an ``.npy``,
        or a folder of images, with classes in its ``labels.csv`` or in ``FOLDER_labels.csv`` beside it (see
        :func:`qbench.data.images.read_labels`). Or a folder of ``.npy`` files, or a Zarr array ``NAME.zarr`` (with the
        extra ``zarr``) or a folder of those: their rows are read when they are needed, and ``y.npy`` in the folder has
        their classes. float64 arrays become float32, which is what models take.
    mean, std, size, layout, channels, dtype
        For folders; see :class:`qbench.data.images.ImageFolder`.
    classes
        Whether ``y`` holds class numbers; False where a metric of the user's knows what it is.

    Returns
    -------
    Samples
        The data as a session takes it, and ``y``.

    Raises
    ------
    DataError
        No such file, not a format from above, damaged, pickled, or labels that do not fit.
    """
    source = Path(path)
    if source.is_dir():
        shards = Shards.find(source)
        if shards:
            if {*_numbers(mean), *_numbers(std)} - {0.0, 1.0}:
                raise DataError(f"{source} holds arrays, which are taken as they are: leave out mean and std")
            return _shards(source, shards, classes)
        files = ImageFolder.find(source)
        edges = (size, size) if isinstance(size, int) else size
        images = ImageFolder(files, _numbers(mean), _numbers(std), edges, layout, channels, dtype)
        table = find_labels(source)
        return Samples(images, None if table is None else read_labels(table, files))
    if source.suffix not in (".npz", ".npy"):
        missing = "" if source.exists() else " (and there is no such file or folder)"
        raise DataError(f"{source} is neither .npz, .npy nor a folder of images{missing}")
    arrays = {name: _single(array) for name, array in read_arrays(source).items()}
    if source.suffix == ".npy":
        return Samples(arrays["x"], None)
    y = arrays.pop("y", None)
    if not arrays:
        raise DataError(f"{source} has no array x")
    return Samples(
        arrays["x"] if list(arrays) == ["x"] else arrays, y if y is None or not classes else _labels(source, y)
    )


def _shards(folder: Path, files: tuple[Path, ...], classes: bool) -> Samples:
    """Rows of arrays in files, with what ``y.npy`` among them says."""
    truth = folder / "y.npy"
    x = Shards(tuple(path for path in files if path != truth))
    if not x.files:
        raise DataError(f"{folder} has nothing but {truth.name}")
    y = read_arrays(truth)["x"] if truth in files else None
    return Samples(x, y if y is None or not classes else _labels(truth, y))


def _single(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype != np.float64:
        return array
    with np.errstate(over="ignore"):  # what overflows becomes infinite, and is refused with its name later
        return array.astype(np.float32)


def _labels(path: Path, y: NDArray[Any]) -> NDArray[np.int64]:
    if y.dtype.kind not in "iu":
        raise DataError(f"y in {path} must be class numbers (integers), not {y.dtype} of shape {y.shape}")
    return y.astype(np.int64)


def _numbers(value: float | Sequence[float]) -> tuple[float, ...]:
    return (float(value),) if isinstance(value, (int, float)) else tuple(map(float, value))
