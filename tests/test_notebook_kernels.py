from __future__ import annotations

import functools
import sys
from collections.abc import Generator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import nbval.kernel
import pytest
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import KernelManager

from tests.notebook_kernels import manager


class _DiesAtOnce(KernelSpecManager):
    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        return KernelSpec(argv=[sys.executable, "-c", "raise SystemExit('no such luck')"], display_name=kernel_name)


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    with TemporaryDirectory(prefix="nb-") as short:  # as tmp_path is not
        monkeypatch.setattr(nbval.kernel, "KernelManager", functools.partial(manager, Path(short), count()))
        yield Path(short)


def test_a_kernel_answers_through_files(folder: Path) -> None:
    km, kc = nbval.kernel.start_new_kernel(kernel_name=nbval.kernel.CURRENT_ENV_KERNEL_NAME)
    try:
        assert isinstance(km, KernelManager)
        assert (folder / "0-ipc-1").is_socket()
        assert kc.execute_interactive("1 + 1", timeout=60)["content"]["status"] == "ok"
    finally:
        kc.stop_channels()
        km.shutdown_kernel(now=True)


@pytest.mark.usefixtures("folder")
def test_what_a_kernel_said_before_it_died_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nbval.kernel, "NbvalKernelspecManager", _DiesAtOnce)
    with pytest.raises(RuntimeError) as caught:
        nbval.kernel.start_new_kernel()
    assert "no such luck" in "".join(caught.value.__notes__)
