"""Arrays in files as data, however many there are: rows are read where they are needed, and when."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.errors import DataError

__all__ = ["Shards"]

_ROWS = 32  # read at a time
_SUFFIXES = (".npy", ".zarr")


@dataclass(frozen=True)
class Shards(Sequence[NDArray[np.generic]]):
    """The rows of several arrays in files, one file after the other by name; axis 0 of each counts samples.

    Parameters
    ----------
    files
        ``.npy`` files, which are mapped to memory, or folders of Zarr arrays (with the extra ``zarr``).
    first, last
        The rows that are meant, of all; `last` None: to the end.
    """

    files: tuple[Path, ...]
    first: int = 0
    last: int | None = None

    @staticmethod
    def find(folder: Path) -> tuple[Path, ...]:
        """The arrays in a folder by name, or the folder itself where it is one; none where it holds something else."""
        if folder.suffix == ".zarr":
            return (folder,)
        return tuple(sorted(path for path in folder.iterdir() if path.suffix in _SUFFIXES))

    def part(self, first: int, last: int) -> Shards:
        """Some of the rows, which whoever gets it reads for himself."""
        return replace(self, first=self.first + first, last=self.first + last)

    def __len__(self) -> int:
        return (self._stops[-1] if self.last is None else self.last) - self.first

    def __getitem__(self, index: int) -> NDArray[np.generic]:  # pyright: ignore[reportIncompatibleMethodOverride] no slices
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._read(self.first + index, 1)

    def __iter__(self) -> Iterator[NDArray[np.generic]]:
        row, last = self.first, self.first + len(self)
        while row < last:
            rows = self._read(row, min(_ROWS, last - row))
            yield rows
            row += len(rows)

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in ("files", "first", "last")}  # no open files

    def _read(self, row: int, count: int) -> NDArray[np.generic]:
        """So many rows from one on, as far as its file goes."""
        shard = bisect_right(self._stops, row)
        start = row - (self._stops[shard - 1] if shard else 0)
        try:
            rows = np.array(self._arrays[shard][start : start + count])
        except Exception as error:  # of damaged files libraries make errors of every kind
            raise DataError(f"cannot read {self.files[shard]}: {error}") from error
        return rows.astype(np.float32) if rows.dtype == np.float64 else rows

    @cached_property
    def _stops(self) -> list[int]:
        return [*accumulate(array.shape[0] for array in self._arrays)]  # Zarr's have no length

    @cached_property
    def _arrays(self) -> list[Any]:
        return [_opened(path) for path in self.files]


def _opened(path: Path) -> Any:
    """An array that reads from its file when it is indexed."""
    reader: Callable[[Path], Any] = _zarr if path.suffix == ".zarr" else _mapped
    try:
        array = reader(path)
    except DataError:
        raise
    except Exception as error:  # as above
        raise DataError(f"cannot read {path}: {error}") from error
    if not array.ndim:
        raise DataError(f"{path} holds one number; axis 0 counts samples")
    return array


def _mapped(path: Path) -> NDArray[Any]:
    return np.load(path, mmap_mode="r", allow_pickle=False)


def _zarr(path: Path) -> Any:
    try:
        import zarr
    except ImportError as error:
        raise DataError(f"{path} needs the package zarr: pip install 'qbench[zarr]'") from error
    return zarr.open_array(path, mode="r")  # pyright: ignore[reportUnknownMemberType]
