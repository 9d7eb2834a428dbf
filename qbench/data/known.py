"""What reading files for the first time found: as long as the file system says the same of them, it is not done again.

A file that was written a moment ago is read again, since it may change once more within a tick of the clock.
"""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Iterable
from pathlib import Path, PosixPath, WindowsPath
from stat import S_ISREG

from qbench.data.portions import Kind

_MOST = 1 << 17  # chunks
_TICK = 2_000_000_000  # nanoseconds between two times of change that any file system tells apart

KNOWN: OrderedDict[str, tuple[str, Kind]] = OrderedDict()
"""Of chunks of samples their digest and shapes, by what was said of the files that they lie in."""


def remember(stamp: str, digest: str, kind: Kind) -> None:
    """Keep what a chunk was found to be; nothing is kept of one without a stamp."""
    if stamp:
        KNOWN[stamp] = digest, kind
        KNOWN.move_to_end(stamp)
        while len(KNOWN) > _MOST:
            KNOWN.popitem(last=False)


def stamp_of(files: Iterable[Path], *said: object) -> str:
    """Identity of files by path, size and time of change, and of what else is said; empty: they may change yet."""
    digest, now = hashlib.sha256(repr(said).encode("utf-8", "surrogatepass")), time.time_ns()
    for path in files:
        if not isinstance(path, (PosixPath, WindowsPath)):
            return ""
        try:
            found = path.stat()
        except OSError:
            return ""  # who reads it then says so
        if not S_ISREG(found.st_mode) or now - found.st_mtime_ns < _TICK:
            return ""
        digest.update(f" {path} {found.st_size} {found.st_mtime_ns}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
