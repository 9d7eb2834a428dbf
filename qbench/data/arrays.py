"""Arrays by name in ``.npz`` files: nothing is pickled, and every name is possible."""

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qbench.errors import DataError
from qbench.files import replacing


def read_arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` by name, or that of an ``.npy`` as ``x``; DataError where they cannot be read."""
    path = Path(path)
    try:
        with path.open("rb") as stream:
            if path.suffix.lower() == ".npy":
                return {"x": np.lib.format.read_array(stream, allow_pickle=False)}
            if not zipfile.is_zipfile(stream):  # NumPy takes what it does not know for a pickle, and says so
                raise ValueError("this is no .npz archive, or one that is cut off")
            stream.seek(0)
            with np.load(stream, allow_pickle=False) as content:
                return {name: content[name] for name in content.files}
    except Exception as error:  # of damaged files NumPy makes errors of every kind, syntax errors among them
        raise DataError(f"cannot read arrays from {path}: {error}") from error


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Like ``numpy.savez``, for arrays of any name (its own keyword ``file`` among them); replaces the file at once."""
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)
