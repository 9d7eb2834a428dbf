"""Samples in files as data, however many there are: they are read where they are needed, and when."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.data.images import AS_IT_IS, ImageForm
from qbench.data.known import stamp_of
from qbench.data.readers import READERS, Reader, Rows
from qbench.data.sliced import Sliced
from qbench.errors import DataError


@dataclass(frozen=True)
class Shards(Sliced[Rows]):
    """The samples in several files, one file after the other by name; axis 0 of each array counts samples.

    Parameters
    ----------
    files
        Each of a kind that `qbench.data.readers.READERS` has.
    form
        How encoded images become arrays.
    first, last
        The samples that are meant, of all; `last` None: to the end.
    """

    files: tuple[Path, ...]
    form: ImageForm = AS_IT_IS
    first: int = 0
    last: int | None = None

    @staticmethod
    def find(path: Path) -> tuple[Path, ...]:
        """The files in a folder by name, or the path itself where it is one; none where it holds something else."""
        if path.suffix.lower() in READERS:
            return (path,)
        return tuple(sorted(file for file in path.iterdir() if file.suffix.lower() in READERS))

    def part(self, first: int, last: int) -> Shards:
        """See :meth:`Sliced.part`."""
        return replace(self, first=self.first + first, last=self.first + last)

    def stamp(self, first: int, last: int) -> str:
        """What tells whether some samples are what they were, see :func:`qbench.data.known.stamp_of`."""
        first, last = self.first + first, self.first + last
        shards = range(bisect_right(self._stops, first), bisect_right(self._stops, last - 1) + 1)
        start = self._stops[shards[0] - 1] if shards[0] else 0
        return stamp_of([self.files[shard] for shard in shards], self.form, first - start, last - start)

    def labels(self) -> NDArray[Any] | None:
        """What the files say of each sample, if all do."""
        try:
            found = [self._reader(shard).labels() for shard in range(len(self.files))]
        except (OSError, ValueError) as error:
            raise DataError(f"cannot read the labels in {self.files[0].parent}: {error}") from error
        known = [labels for labels in found if labels is not None]
        return np.concatenate(known) if len(known) == len(found) else None

    def __len__(self) -> int:
        return (self._stops[-1] if self.last is None else self.last) - self.first

    def at(self, index: int) -> Rows:
        """The sample of a number, with a batch axis of one; DataError where its file is damaged."""
        return self._read(self.first + index, 1)

    def __iter__(self) -> Iterator[Rows]:
        row, last = self.first, self.first + len(self)
        while row < last:
            rows = self._read(row, last - row)
            yield rows
            row += len(next(iter(rows.values())) if isinstance(rows, Mapping) else rows)

    def __getstate__(self) -> dict[str, Any]:
        return {name: vars(self)[name] for name in ("files", "form", "first", "last")}  # no open files

    def _read(self, row: int, most: int) -> Rows:
        """Some samples from one on: as many as are read together, and as its file has."""
        shard = bisect_right(self._stops, row)
        start = row - (self._stops[shard - 1] if shard else 0)
        for other in self._open.difference({shard}):
            self._reader(other).release()
        self._open.clear()
        self._open.add(shard)
        reader = self._reader(shard)
        try:
            rows = reader.rows(start, min(start + most, start + reader.at_once, len(reader)))
        except DataError:
            raise
        except Exception as error:  # of damaged files libraries make errors of every kind
            raise DataError(f"cannot read {self.files[shard]}: {error}") from error
        return {name: _single(a) for name, a in rows.items()} if isinstance(rows, Mapping) else _single(rows)

    @cached_property
    def _open(self) -> set[int]:
        return set()

    @cached_property
    def _stops(self) -> list[int]:
        return [*accumulate(len(self._reader(shard)) for shard in range(len(self.files)))]

    def _reader(self, shard: int) -> Reader:
        if shard not in self._readers:
            path = self.files[shard]
            try:
                self._readers[shard] = READERS[path.suffix.lower()](path, self.form)
            except DataError:
                raise
            except Exception as error:  # as above
                raise DataError(f"cannot read {path}: {error}") from error
        return self._readers[shard]

    @cached_property
    def _readers(self) -> dict[int, Reader]:
        return {}


def _single(rows: NDArray[Any]) -> NDArray[Any]:
    return rows.astype(np.float32) if rows.dtype == np.float64 else rows
