"""Writing files so that a reader never finds half of one: a temporary name in the same folder, then a rename."""

import errno
import secrets
from collections.abc import Generator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

from qbench.errors import ExportError, shown


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """Give a temporary path beside `path`; what was written there replaces `path` in one step, or nothing does.

    Raises
    ------
    OSError
        Disk full, folder missing or read-only; it names `path`, which is what it was before. Nothing is left behind.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):  # a rename would take the place of /dev/null itself
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    temporary = path.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        yield temporary
        temporary.replace(path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):  # a full disk names no file, and nobody knows the temporary one
            error.filename = str(path)
            del error.filename2
        raise


@contextmanager
def exported(path: str | PathLike[str], what: str = "") -> Generator[None]:
    """Say of what is written inside, and cannot be, where to; `what` comes before the path: "the report to ".

    Raises
    ------
    ExportError
        In place of OSError.
    """
    try:
        yield
    except OSError as error:
        raise ExportError(f"cannot write {what}{shown(str(path))}: {error.strerror or error}") from error


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file at once."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file at once, with the same line ends on every system."""
    write_bytes(path, text.encode("utf-8"))
