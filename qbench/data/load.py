"""Data from files: NumPy archives, arrays, folders of images. Nothing is unpickled."""

import os
from collections.abc import Sequence
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from qbench.data.arrays import read_arrays
from qbench.data.images import ImageFolder, ImageForm, find_labels, read_labels
from qbench.data.places import place
from qbench.data.shards import Shards
from qbench.errors import DataError, check_kind

IMAGES_INSIDE = frozenset({".parquet", ".tar"})
"""Ends of the names of files that may hold images."""


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
        :func:`qbench.data.images.read_labels`). Or what is read when it is needed: a folder of ``.npy`` or ``.npz``
        files, Zarr arrays ``NAME.zarr`` (extra ``zarr``), ``.parquet`` files (extra ``parquet``) or WebDataset ``.tar``
        files, or one of the latter three; ``y.npy`` in the folder has the classes where the files do not. Or a URL of
        any of those, such as ``s3://bucket/images`` (extra ``remote``). float64 arrays become float32, which is what
        models take.
    mean, std, size, layout, channels, dtype
        For images; see :class:`qbench.data.images.ImageForm`.
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
    check_kind(
        path, (str, os.PathLike), DataError, "data is read from a path, not {}; a session takes arrays as they are"
    )
    source = place(path)
    check_kind(size, (int, tuple, list, NoneType), DataError, "size= is a number or (height, width), not {}")
    edges = (size, size) if isinstance(size, int) else size and cast("tuple[int, int]", tuple(size))
    form = ImageForm(_numbers("mean", mean), _numbers("std", std), edges, layout, channels, dtype)
    if source.is_dir() or (source.suffix.lower() in IMAGES_INSIDE and source.is_file()):
        shards = Shards.find(source)
        if shards:
            if form.is_normal and not {file.suffix.lower() for file in shards} & IMAGES_INSIDE:
                raise DataError(f"{source} holds arrays, which are taken as they are: leave out mean and std")
            return _shards(source, shards, form, classes)
        files = ImageFolder.find(source)
        table = find_labels(source)
        return Samples(ImageFolder(files, form), None if table is None else read_labels(table, files))
    return _arrays(source, classes)


def _arrays(source: Path, classes: bool) -> Samples:
    """Samples of an ``.npz`` or ``.npy``."""
    if source.suffix.lower() not in (".npz", ".npy"):
        missing = "" if source.exists() else " (and there is no such file or folder)"
        raise DataError(f"{source} is neither .npz, .npy, .parquet, .tar nor a folder of images{missing}")
    arrays = {name: _single(array) for name, array in read_arrays(source).items()}
    if source.suffix.lower() == ".npy":
        return Samples(arrays["x"], None)
    y = arrays.pop("y", None)
    if not arrays:
        raise DataError(f"{source} has no array x")
    x = arrays["x"] if list(arrays) == ["x"] else arrays
    return Samples(x, y if y is None or not classes else _labels(source, y))


def _shards(folder: Path, files: tuple[Path, ...], form: ImageForm, classes: bool) -> Samples:
    """Samples in files, with what ``y.npy`` among them says, or they themselves."""
    truth = folder / "y.npy"
    x = Shards(tuple(path for path in files if path != truth), form)
    if not x.files:
        raise DataError(f"{folder} has nothing but {truth.name}")
    y = read_arrays(truth)["x"] if truth in files else x.labels()
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


def _numbers(what: str, value: float | Sequence[float]) -> tuple[float, ...]:
    try:
        return tuple(map(float, np.atleast_1d(value)))
    except (TypeError, ValueError) as error:
        raise DataError(f"{what}={value!r}: give one number, or one for each channel") from error
