"""Files that hold many samples: how many there are, and some of them at a time."""

import importlib
import io
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from qbench.data.arrays import read_arrays
from qbench.data.images import SUFFIXES, ImageForm
from qbench.errors import DataError, shown

Rows = NDArray[np.generic] | Mapping[str, NDArray[np.generic]]
"""Some samples: one array, or arrays by input name; axis 0 counts them."""

_ROWS = 32  # read at a time


class Reader(Protocol):
    """One file. Its place is told when it is made, and what is in it is read when it is asked for."""

    @property
    def at_once(self) -> int:
        """How many samples are read together; 1 where they may differ in shape."""
        ...

    def __len__(self) -> int: ...

    def rows(self, start: int, stop: int) -> Rows:
        """Some of the samples, no more than are read together."""
        ...

    def labels(self) -> NDArray[Any] | None:
        """What the file says of each sample, if it does."""
        ...

    def release(self) -> None:
        """Forget what was read."""
        ...


class ArrayReader:
    """An ``.npy`` file, mapped to memory where it is on this machine, or a Zarr array."""

    at_once = _ROWS

    def __init__(self, path: Path, form: ImageForm) -> None:
        self._array: Any = _zarr(path) if path.suffix.lower() == ".zarr" else _mapped(path)
        if not self._array.ndim:
            raise DataError(f"{path} holds one number; axis 0 counts samples")

    def __len__(self) -> int:
        return self._array.shape[0]  # Zarr's have no length

    def rows(self, start: int, stop: int) -> Rows:
        """Some of the rows."""
        return np.array(self._array[start:stop])

    def labels(self) -> None:
        """None."""

    def release(self) -> None:
        """The array reads by itself."""


class ArchiveReader:
    """An ``.npz`` file: ``x``, or an array for each input by its name, and perhaps ``y``; read whole."""

    at_once = _ROWS

    def __init__(self, path: Path, form: ImageForm) -> None:
        self._path = path
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            self._names = [name.removesuffix(".npy") for name in archive.namelist()]
            given = [name for name in self._names if name != "y"]
            if not given:
                raise DataError(f"{path} has no array x")
            with archive.open(f"{given[0]}.npy") as member:
                version = np.lib.format.read_magic(member)
                header = np.lib.format.read_array_header_1_0 if version == (1, 0) else _header_2_0
                self._len = header(member)[0][0]
        self._given, self._arrays = given, dict[str, NDArray[Any]]()

    def __len__(self) -> int:
        return self._len

    def rows(self, start: int, stop: int) -> Rows:
        """Some of the rows of each array."""
        self._arrays = self._arrays or read_arrays(self._path)
        found = {name: self._arrays[name][start:stop] for name in self._given}
        return found["x"] if self._given == ["x"] else found

    def labels(self) -> NDArray[Any] | None:
        """The array y."""
        return read_arrays(self._path)["y"] if "y" in self._names else None

    def release(self) -> None:
        """Forget the arrays."""
        self._arrays = {}


class TarReader:
    """A WebDataset tar: members whose names are the same up to the first dot are one sample.

    An image, or ``KEY.npy`` (``KEY.NAME.npy`` for a model of several inputs), and perhaps ``KEY.cls``, its class.
    """

    at_once = 1

    def __init__(self, path: Path, form: ImageForm) -> None:
        self._path, self._form = path, form
        samples: dict[str, dict[str, tuple[int, int]]] = {}
        with path.open("rb") as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
            for member in archive:
                folder, _, name = member.name.rpartition("/")
                key, _, kind = name.partition(".")
                if member.isfile() and key:
                    samples.setdefault(f"{folder}/{key}", {})[kind.lower()] = member.offset_data, member.size
        self._samples = [(key, parts) for key, parts in samples.items() if any(map(_is_data, parts))]
        if not self._samples:
            raise DataError(f"{path} has neither images nor .npy files")

    def __len__(self) -> int:
        return len(self._samples)

    def rows(self, start: int, stop: int) -> Rows:
        """One sample."""
        (key, parts), arrays = self._samples[start], dict[str, NDArray[Any]]()
        for kind in filter(_is_data, parts):
            name = f"{self._path}{key}.{kind}"
            stream = io.BytesIO(self._content(*parts[kind]))
            if f".{kind}" in SUFFIXES:
                return self._form.array(stream, name)
            arrays[kind.removesuffix("npy").strip(".")] = np.lib.format.read_array(stream, allow_pickle=False)[None]
        return arrays[""] if [*arrays] == [""] else arrays

    def labels(self) -> NDArray[Any] | None:
        """The classes, if each sample has one."""
        places = [parts.get("cls") for _, parts in self._samples]
        texts = [None if place is None else self._content(*place) for place in places]
        return np.array([int(text) for text in texts if text is not None]) if None not in texts else None

    def release(self) -> None:
        """Nothing is kept."""

    def _content(self, offset: int, size: int) -> bytes:
        with self._path.open("rb") as stream:
            stream.seek(offset)
            return stream.read(size)


class ParquetReader:
    """A Parquet file: columns of numbers, lists or encoded images (bytes, or a struct that has them).

    A column of class numbers (``label``, ``class``, ``class_index`` or ``y``) says what is right; of the others each is
    an input, by its name where there are several. One row group is held at a time.
    """

    def __init__(self, path: Path, form: ImageForm) -> None:
        try:
            parquet = importlib.import_module("pyarrow.parquet")  # which has no types
        except ImportError as error:
            raise DataError(f"{path} needs the package pyarrow: pip install 'qbench[parquet]'") from error
        self._parquet: Any = parquet
        self._path, self._form, self._group, self._columns = path, form, -1, dict[str, list[Any]]()
        with path.open("rb") as stream:
            file = self._parquet.ParquetFile(stream)
            sizes = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
            fields = {field.name: field.type for field in file.schema_arrow}
        self._stops = np.cumsum(sizes).tolist()
        self._label = next((name for name in ("class_index", "label", "class", "y") if name in fields), None)
        self._names = [name for name in fields if name != self._label]
        if not self._names:
            raise DataError(f"{path} has no column but {self._label}")
        self._shapes = {name: getattr(kind, "shape", None) for name, kind in fields.items()}  # of tensors
        encoded = [name for name in self._names if _is_encoded(fields[name])]
        self.at_once = 1 if encoded else _ROWS
        if encoded:
            self._names = encoded[:1]

    def __len__(self) -> int:
        return self._stops[-1] if self._stops else 0

    def rows(self, start: int, stop: int) -> Rows:
        """Some of the rows, up to the end of their group."""
        group = int(np.searchsorted(self._stops, start, "right"))
        first = self._stops[group - 1] if group else 0
        if group != self._group:
            self._columns, self._group = self._read(group), group
        some = {name: column[start - first : stop - first] for name, column in self._columns.items()}
        arrays = {name: self._array(name, values, start) for name, values in some.items()}
        return arrays[self._names[0]] if len(arrays) == 1 else arrays

    def labels(self) -> NDArray[Any] | None:
        """The column of classes."""
        if self._label is None:
            return None
        with self._path.open("rb") as stream:
            return self._parquet.read_table(stream, columns=[self._label])[self._label].to_numpy()

    def release(self) -> None:
        """Forget the row group."""
        self._columns, self._group = {}, -1

    def _read(self, group: int) -> dict[str, list[Any]]:
        with self._path.open("rb") as stream:
            table = self._parquet.ParquetFile(stream).read_row_group(group, columns=self._names)
        found = {name: table[name].combine_chunks() for name in self._names}
        return {name: getattr(column, "storage", column).to_pylist() for name, column in found.items()}

    def _array(self, name: str, values: list[Any], row: int) -> NDArray[Any]:
        if isinstance(first := values[0], (bytes, dict)):
            content: Any = first if isinstance(first, bytes) else cast("Mapping[str, bytes]", first)["bytes"]
            return self._form.array(io.BytesIO(content), f"in row {row} of {self._path}")
        array, shape = np.array(values), self._shapes[name]
        if array.dtype.kind not in "iufb":
            raise DataError(f"column {shown(name)} of {self._path} holds neither numbers of one shape nor images")
        return array if shape is None else array.reshape(-1, *shape)


READERS: Mapping[str, Callable[[Path, ImageForm], Reader]] = {
    ".npy": ArrayReader,
    ".npz": ArchiveReader,
    ".parquet": ParquetReader,
    ".tar": TarReader,
    ".zarr": ArrayReader,
}
"""By the end of a file's name."""


def _is_data(kind: str) -> bool:
    return f".{kind}" in SUFFIXES or kind == "npy" or kind.endswith(".npy")


def _is_encoded(kind: Any) -> bool:
    names = [kind.field(number).name for number in range(kind.num_fields)] if str(kind).startswith("struct") else []
    return str(kind) in ("binary", "large_binary") or "bytes" in names


def _header_2_0(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    return np.lib.format.read_array_header_2_0(stream)


def _mapped(path: Path) -> NDArray[Any]:
    if isinstance(path, Path):  # pyright: ignore[reportUnnecessaryIsInstance] what lies elsewhere only looks like one
        return np.load(path, mmap_mode="r", allow_pickle=False)
    return read_arrays(path)["x"]  # pyright: ignore[reportUnreachable]


def _zarr(path: Path) -> Any:
    try:
        import zarr
    except ImportError as error:
        raise DataError(f"{path} needs the package zarr: pip install 'qbench[zarr]'") from error
    return zarr.open_array(str(path), mode="r")  # pyright: ignore[reportUnknownMemberType]
