"""Machine code of Python functions, compiled when it is first needed and kept on disk."""

import glob
import hashlib
import json
import os
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from platformdirs import user_cache_path

from qbench.files import write_bytes
from qbench.kernels.objects import ObjectCode, load, numba_folder

_VARIABLE = "NUMBA_CACHE_DIR"
_CHOICES = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_ENABLE_AVX", "NUMBA_OPT")
"""Variables that change what Numba compiles."""


@cache
def _sources() -> str:
    """A digest of everything that compiled code is made from: `qbench.quant` says how it rounds."""
    here = Path(__file__).parent
    digest, rooms = hashlib.sha256(), (here, here.with_name("quant"))
    for file in (numba_folder() / "_version.py", *sorted(path for room in rooms for path in room.rglob("*.py"))):
        digest.update(file.read_bytes())
    return digest.hexdigest()


@cache
def _machine() -> str:
    """A digest of what code is compiled for: Python's version, the processor and what the user says of it."""
    processor = llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    chosen = [os.environ.get(name) for name in _CHOICES]
    return hashlib.sha256(repr((sys.version, *processor, *chosen)).encode()).hexdigest()


def _key(data: bytes) -> dict[str, str]:
    """What must be as it was for an object file to be used."""
    return {"machine": _machine(), "sources": _sources(), "digest": hashlib.sha256(data).hexdigest()}


def folder() -> Path:
    """Where code is kept: as NUMBA_CACHE_DIR says, beside the kernels, or where the user may write."""
    if chosen := os.environ.get(_VARIABLE):
        return Path(chosen, "qbench")
    beside = Path(__file__).with_name("__pycache__")
    place = beside if beside.exists() else beside.parent
    return beside if os.access(place, os.W_OK) else user_cache_path("qbench")


class Recipe(NamedTuple):
    """How code is made, in words that another process understands: a function of a module and its arguments."""

    module: str
    function: str
    arguments: tuple[Any, ...]


_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class Code:
    """A C function: compiled at first use, or loaded where some process compiled it before.

    Parameters
    ----------
    make
        Gives the function that Numba compiles.
    arguments, result
        Names of Numba's types.
    name
        Unique among all that is compiled here, with everything that the function closes over.
    recipe
        Who else can make it.
    """

    make: Callable[[], Callable[..., Any]]
    arguments: tuple[str, ...]
    result: str
    name: str
    recipe: Recipe | None = None

    @property
    def ready(self) -> bool:
        """Whether it was compiled or loaded already."""
        return "_address" in self.__dict__

    @property
    def kept(self) -> bool:
        """Whether some process compiled it before, and left it on disk."""
        return self._file.exists()

    @property
    def address(self) -> int:
        """Where the machine code lies."""
        with _lock:
            return self._address

    @cached_property
    def _address(self) -> int:
        """A process that wants what another one is compiling waits, and loads it."""
        with ExitStack() as alone:
            found = self._read()
            if not found:
                with suppress(OSError, NotImplementedError):  # a disk without locks: some code is compiled twice
                    alone.enter_context(self._lock_of_file())
                found = self._read() or self._compile()
            return load(found)

    def _compile(self) -> ObjectCode:
        from qbench.kernels.compiling import compile_function  # with Numba behind it

        made = compile_function(self.make(), self.arguments, self.result)
        with suppress(OSError):  # a disk that is full or read-only: the next process compiles it again
            self._write(made)
        return made

    @cached_property
    def _file(self) -> Path:
        return folder() / f"{self.name}-{_machine()[:12]}-{_sources()[:12]}.code"

    def _lock_of_file(self) -> Any:
        from filelock import FileLock  # loaded by who compiles: others start without it

        self._file.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(self._file.with_name(f"{self.name}-{_machine()[:12]}.lock"))

    def _write(self, code: ObjectCode) -> None:
        """Code of the same name from older sources is removed."""
        head = json.dumps({**_key(code.data), "symbol": code.symbol, "calls": code.calls})
        write_bytes(self._file, head.encode() + b"\n" + code.data)
        for file in self._file.parent.glob(f"{glob.escape(f'{self.name}-{_machine()[:12]}')}-*.code"):
            if file != self._file:
                with suppress(OSError):
                    file.unlink()

    def _read(self) -> ObjectCode | None:
        """None where there is none, or not all of it."""
        try:
            head, _, data = self._file.read_bytes().partition(b"\n")
            found = json.loads(head)
            is_whole = _key(data).items() <= found.items()
            return ObjectCode(data, found["symbol"], tuple(found["calls"])) if is_whole else None
        except (OSError, ValueError, KeyError, AttributeError):
            return None
