"""Where data lies: a path of this machine, or a URL that fsspec can read."""

import os
from pathlib import Path
from typing import Any, cast

from qbench.errors import DataError, shown


def place(path: str | os.PathLike[str]) -> Path:
    """A path, or for a URL such as ``s3://bucket/images`` what reads like one.

    Raises
    ------
    DataError
        What a URL needs is not installed, or its protocol is unknown.
    """
    text = str(path)
    if "://" not in text or isinstance(path, Path):
        return Path(path)
    try:
        from upath import UPath
    except ImportError as error:
        raise DataError(f"{shown(text)} needs fsspec: pip install 'qbench[remote]'") from error
    try:
        found: Any = UPath(text)
        found.exists()  # what the protocol needs is imported now
    except (ImportError, ValueError, OSError) as error:
        raise DataError(f"{shown(text)} cannot be read: {error}") from error
    return cast("Path", found)
