"""Images as data: decoded one at a time, whenever they are read."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from qbench.data.known import stamp_of
from qbench.data.sliced import Sliced
from qbench.errors import DataError, shown

SUFFIXES = frozenset({".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"})
"""Of files that hold an image."""
_MODES = {"RGB": "RGB", "BGR": "RGB", "L": "L"}
_FILE_COLUMNS = ("file", "filename", "path", "image")
_CLASS_COLUMNS = ("class_index", "label", "class", "y")


@dataclass(frozen=True)
class ImageForm:
    """How an image becomes an array with a batch axis of one.

    An image that is not of the wanted size is scaled (bicubic) until it just covers that size, then cropped around its
    centre.

    Parameters
    ----------
    mean, std
        Taken from each element, and divided by: in units of 0..255, one number or one per channel in the order of
        `channels`.
    size
        (height, width); None where the images have the right size.
    layout
        ``NCHW`` or ``NHWC``.
    channels
        ``RGB``, ``BGR`` or ``L`` (grey).
    dtype
        ``float32``, or ``uint8`` where the model takes pixels as they are.
    """

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    size: tuple[int, int] | None = None
    layout: Literal["NCHW", "NHWC"] = "NCHW"
    channels: Literal["RGB", "BGR", "L"] = "RGB"
    dtype: Literal["float32", "uint8"] = "float32"

    def __post_init__(self) -> None:
        if self.layout not in ("NCHW", "NHWC"):
            raise DataError(f"layout {shown(self.layout)} is neither NCHW nor NHWC")
        if self.channels not in _MODES:
            raise DataError(f"channels {shown(self.channels)} are neither RGB, BGR nor L")
        if self.dtype not in ("float32", "uint8"):
            raise DataError(f"images become float32 or uint8, not {self.dtype}")
        counts = (1, 1 if self.channels == "L" else 3)
        for what, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in counts:
                raise DataError(f"{what} needs one number or one per channel of {self.channels}, not {len(values)}")
        if not all(np.isfinite((*self.mean, *self.std))) or min(self.std) <= 0:
            raise DataError(f"mean {self.mean} and std {self.std} must be finite, and std positive")
        if self.dtype == "uint8" and self.is_normal:
            raise DataError("the model takes uint8 pixels as they are: leave out mean and std")
        if self.size is not None and (len(self.size) != 2 or {*map(type, self.size)} != {int} or min(self.size) < 1):
            raise DataError(f"size {self.size} must be positive: one whole number, or height and width")

    @property
    def is_normal(self) -> bool:
        """Whether there is a mean or a standard deviation."""
        return (set(self.mean), set(self.std)) != ({0.0}, {1.0})

    def array(self, stream: IO[bytes], name: object) -> NDArray[np.generic]:
        """The image in a file; DataError, which names it, where it cannot be read."""
        try:
            with Image.open(stream) as image:
                pixels = np.asarray(self._fitted(image.convert(_MODES[self.channels])), np.uint8)
        except Exception as error:  # of damaged files Pillow makes errors of every kind
            raise DataError(f"cannot read the image {name}: {error}") from error
        return self.of_pixels(pixels)

    def of_pixels(self, pixels: NDArray[np.uint8]) -> NDArray[np.generic]:
        """Of uint8[height, width] or [height, width, channels], as Pillow gives them in the wanted mode."""
        pixels = pixels.reshape(*pixels.shape[:2], -1)
        if self.channels == "BGR":
            pixels = pixels[:, :, ::-1]
        array = pixels if self.dtype == "uint8" else self._normal(pixels)
        return np.ascontiguousarray(array.transpose(2, 0, 1) if self.layout == "NCHW" else array)[np.newaxis]

    def _normal(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        return (pixels.astype(np.float32) - np.asarray(self.mean, np.float32)) / np.asarray(self.std, np.float32)

    def _fitted(self, image: Image.Image) -> Image.Image:
        if self.size is None or image.size == self.size[::-1]:
            return image
        height, width = self.size
        scale = max(height / image.height, width / image.width)
        wide, high = max(width, round(image.width * scale)), max(height, round(image.height * scale))
        scaled = image.resize((wide, high), Image.Resampling.BICUBIC)
        left, top = (wide - width) // 2, (high - height) // 2
        return scaled.crop((left, top, left + width, top + height))


AS_IT_IS = ImageForm()
"""Pixels from 0 to 255, channels first."""


@dataclass(frozen=True)
class ImageFolder(Sliced[NDArray[np.generic]]):
    """The images of a folder (and of those in it), by name, each as an array with a batch axis of one.

    Parameters
    ----------
    files
        From :meth:`find`.
    form
        How images become arrays; without a size, all must have that of the first.
    """

    files: tuple[Path, ...]
    form: ImageForm = AS_IT_IS

    @staticmethod
    def find(folder: Path) -> tuple[Path, ...]:
        """The image files in a folder and in the folders in it, by name; DataError where there is none."""
        files = tuple(
            sorted(path for path in folder.absolute().rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
        )
        if not files:
            raise DataError(f"{folder} has no images ({', '.join(sorted(SUFFIXES))})")
        return files

    def part(self, first: int, last: int) -> ImageFolder:
        """See :meth:`Sliced.part`."""
        return replace(self, files=self.files[first:last])

    def stamp(self, first: int, last: int) -> str:
        """What tells whether some images are what they were, see :func:`qbench.data.known.stamp_of`."""
        return stamp_of(self.files[first:last], self.form)

    def __len__(self) -> int:
        return len(self.files)

    def at(self, index: int) -> NDArray[np.generic]:
        """The image of a number; DataError where it cannot be read, or has another size than the first."""
        path = self.files[index]
        array, wanted = self._array(path), self._size
        rows = array.shape[2:] if self.form.layout == "NCHW" else array.shape[1:3]
        if rows != wanted:
            raise DataError(f"{path} is {_by(rows)}, but the first image is {_by(wanted)}: give a size")
        return array

    def _array(self, path: Path) -> NDArray[np.generic]:
        try:
            with path.open("rb") as stream:
                return self.form.array(stream, path)
        except OSError as error:
            raise DataError(f"cannot read the image {path}: {error}") from error

    @cached_property
    def _size(self) -> tuple[int, ...]:
        """Height and width of every image: the wanted ones, else those of the first."""
        if self.form.size is not None:
            return self.form.size
        with self.files[0].open("rb") as stream, Image.open(stream) as image:
            return image.size[::-1]


def _by(shape: tuple[int, ...]) -> str:
    return f"{shape[0]} by {shape[1]}"


def find_labels(folder: Path) -> Path | None:
    """``labels.csv`` in the folder, or ``FOLDER_labels.csv`` beside it."""
    candidates = (folder / "labels.csv", folder.parent / f"{folder.name}_labels.csv")
    return next((path for path in candidates if path.is_file()), None)


def read_labels(table: Path, files: Sequence[Path]) -> NDArray[np.int64]:
    """The class of each image file.

    Parameters
    ----------
    table
        CSV with a header: a column ``file`` (or filename, path, image), relative to the table's folder or just the
        file's name, and a column ``class_index`` (or label, class, y) of integers. Rows of other files are skipped.
    files
        Every one needs a row.
    """
    try:
        with table.open(newline="", encoding="utf-8-sig") as stream:
            rows = list(csv.DictReader(stream))
            header = rows[0].keys() if rows else ()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"cannot read the labels {table}: {error}") from error
    file_column = next((name for name in _FILE_COLUMNS if name in header), None)
    class_column = next((name for name in _CLASS_COLUMNS if name in header), None)
    if file_column is None or class_column is None:
        columns = ", ".join(map(shown, map(str, header))) or "no rows"
        wanted = f"one of {', '.join(_FILE_COLUMNS)} and one of {', '.join(_CLASS_COLUMNS)}"
        raise DataError(f"{table} must have the columns {wanted}; it has {columns}")
    classes, lines = dict[str, int](), dict[str, int]()
    for line, row in enumerate(rows, start=2):
        name = (row[file_column] or "").replace("\\", "/")
        try:
            number = int(np.int64(int(row[class_column] or "")))
        except (ValueError, OverflowError):
            raise DataError(f"{table}, line {line}: {shown(str(row[class_column]))} is not a class number") from None
        if classes.setdefault(name, number) != number:
            told = f"class {classes[name]} in line {lines[name]}, and {number} in line {line}"
            raise DataError(f"{table} gives {shown(name)} {told}; remove one of them")
        lines.setdefault(name, line)
    return np.array([_class_of(path, table, classes) for path in files], np.int64)


def _class_of(path: Path, table: Path, classes: dict[str, int]) -> int:
    keys, folder = [path.name], table.absolute().parent
    if path.is_relative_to(folder):
        keys.insert(0, path.relative_to(folder).as_posix())
    for key in keys:
        if key in classes:
            return classes[key]
    raise DataError(f"{table} has no row for {shown(keys[0])}")
