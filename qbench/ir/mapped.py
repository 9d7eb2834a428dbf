"""Arrays that lie in files, mapped to memory: where they are, and how their memory is given back."""

from __future__ import annotations

import errno
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Place:
    """Where in a file an array's bytes are, and what tells whether the file was changed.

    Parameters
    ----------
    path, offset
        The file, and the first byte in it.
    size, modified_ns
        Of the file: its bytes, and the time of its last change.
    """

    path: str
    offset: int
    size: int
    modified_ns: int

    @classmethod
    def of(cls, array: NDArray[Any]) -> Place | None:
        """That of an array that is mapped to memory to be read; None of any other."""
        for owner in _owners(array):
            if isinstance(owner, np.memmap) and isinstance(owner.base, mmap.mmap) and owner.mode == "r":
                path, first = Path(str(owner.filename)).resolve(), array.ctypes.data - owner.ctypes.data
                return cls._at(path, owner.offset + first) if path.is_file() else None
        return None

    @classmethod
    def _at(cls, path: Path, offset: int) -> Place:
        found = path.stat()
        return cls(str(path), offset, found.st_size, found.st_mtime_ns)

    def array(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        """What is there now, mapped to memory; OSError or ValueError where the file is not, or is too short."""
        if not Path(self.path).is_file():
            raise FileNotFoundError(errno.ENOENT, "there is no such file", self.path)
        return np.asarray(np.memmap(self.path, dtype, "r", self.offset, shape))

    @property
    def is_as_it_was(self) -> bool:
        """Whether nothing says that the file was changed."""
        return self == self._at(Path(self.path), self.offset)


def release(array: NDArray[Any]) -> None:
    """Let the system take back the memory of an array in a file; what is read of it again comes from there."""
    for owner in _owners(array):
        if isinstance(owner.base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            owner.base.madvise(mmap.MADV_DONTNEED)


def _owners(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The array, and those that it is a view of."""
    owner: Any = array
    while isinstance(owner, np.ndarray):
        yield owner
        owner = owner.base
