"""A plugin of pytest: nbval's kernels talk through files, not ports, and what a kernel says before it dies is told.

For ports, jupyter_client looks which are free, lets go of them, and the kernel takes them a second later: where another
process was quicker the kernel dies as it starts. nbval throws away what it said.
"""

from __future__ import annotations

import functools
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import nbval.kernel
import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager


class _Client(BlockingKernelClient):
    said: Path

    def wait_for_ready(self, timeout: float | None = None) -> None:
        try:
            super().wait_for_ready(timeout)
        except RuntimeError as error:
            error.add_note(f"the kernel's last words: {self.said.read_text()[-2000:]}")
            raise


class _Manager(KernelManager):
    said: Path

    def start_kernel(self, stderr: IO[str] | None = None, **options: Any) -> None:
        if stderr:  # /dev/null
            stderr.close()
        with self.said.open("w") as file:
            super().start_kernel(stderr=file, **options)

    def client(self, **options: Any) -> BlockingKernelClient:
        client = super().client(**options)
        client.said = self.said
        return client


def manager(folder: Path, numbers: count[int], **options: Any) -> _Manager:
    file = folder / f"{next(numbers)}.json"  # a socket's path has at most 107 bytes
    manager = _Manager(transport="ipc", connection_file=str(file), client_factory=_Client, **options)
    manager.said = file.with_suffix(".txt")
    return manager


def pytest_configure(config: pytest.Config) -> None:
    folder = TemporaryDirectory(prefix="nb-")
    config.add_cleanup(folder.cleanup)
    nbval.kernel.KernelManager = functools.partial(manager, Path(folder.name), count())
