from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numba
import pytest
from numba import types
from numba.extending import register_jitable

from qbench.kernels import compiling

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

SCRIPT = """
import ctypes, sys
from numba import types
from numba.extending import register_jitable
from qbench.kernels import compiling
def double(x): return 2 * x
code = compiling.Code(double, (types.int64,), types.int64, "test.double")
print(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address)(21), code.compiled.cache_hits)
"""


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.rglob("test.double-*"))


def test_code_is_kept_for_other_processes(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    runs = [subprocess.run([sys.executable, script], capture_output=True, text=True, check=True) for _ in range(2)]
    assert [run.stdout for run in runs] == ["42 0\n", "42 1\n"]
    assert len(files(tmp_path)) == 3  # with the lock of who compiles it


def test_of_several_processes_that_need_code_one_compiles_it(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    runs = [subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert sorted(run.communicate()[0] for run in runs) == ["42 0\n", "42 1\n", "42 1\n"]
    assert len(files(tmp_path)) == 3


def test_code_from_older_sources_is_not_used_and_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    found = []
    for sources in ("a" * 64, "b" * 64):
        monkeypatch.setattr(compiling, "_sources", lambda sources=sources: sources)

        def double(x):
            return 2 * x

        assert compiling.Code(double, (types.int64,), types.int64, "test.double").compiled.cache_hits == 0
        found.append([file for file in files(tmp_path) if not file.endswith(".lock")])
    assert len(found[0]) == len(found[1]) == 2
    assert not set(found[0]) & set(found[1])


def test_what_compiled_code_calls_can_be_called_by_others_later(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    @register_jitable
    def double(x):
        return 2 * x

    @register_jitable
    def quadruple(x):
        return double(double(x))

    @numba.njit
    def increase(x):
        return x + 1

    def call(x):
        return quadruple(increase(x)) + double(x)

    code = compiling.Code(call, (types.int64,), types.int64, "test.parts")
    assert code.compiled.ctypes(10) == 4 * 11 + 20
    assert increase(10) == 11
    assert numba.njit(lambda x: quadruple(x) + double(x))(10) == 60
