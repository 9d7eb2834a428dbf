"""Code on disk: kept for other processes, compiled by one of them, and never used where it is not whole."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from qbench.kernels import code as module
from qbench.kernels.code import Code, folder

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")

SCRIPT = """
import ctypes, sys
from qbench.kernels.code import Code
from qbench.kernels.jit import register_jitable

@register_jitable
def twice(x):
    return 2 * x

code = Code(lambda: lambda x: twice(x) // (x - 1), ("int64",), "int64", "test.double")
print(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address)(int(sys.argv[1])), "numba" in sys.modules)
"""


def double(factor: int = 2) -> Code:
    return Code(lambda: lambda x: factor * x, ("int64",), "int64", "test.double")


def called(code: Code, x: int) -> int:
    return ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.address)(x)


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.rglob("test.double-*.code"))


def started(tmp_path: Path, x: int) -> subprocess.Popen[str]:
    script = tmp_path / "script.py"
    if not script.exists():  # others may be reading it
        script.write_text(SCRIPT)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, script, str(x)], env=environment, text=True, **pipes)  # type: ignore[call-overload]


def test_code_is_kept_for_other_processes_which_start_without_numba(tmp_path: Path) -> None:
    runs = [started(tmp_path, 21).communicate()[0] for _ in range(2)]
    assert runs == ["2 True\n", "2 False\n"]
    assert len(files(tmp_path)) == 1


def test_of_several_processes_that_need_code_one_compiles_it(tmp_path: Path) -> None:
    runs = [started(tmp_path, 21) for _ in range(3)]
    assert sorted(run.communicate()[0] for run in runs) == ["2 False\n", "2 False\n", "2 True\n"]
    assert len(files(tmp_path)) == 1


def test_what_goes_wrong_in_kept_code_is_told(tmp_path: Path) -> None:
    """Numba's helpers are there without Numba: an error cannot leave a C function, and is written where errors go."""
    for _ in range(2):
        run = started(tmp_path, 1)
        out, error = run.communicate()
        assert (run.returncode, out.split()[0]) == (0, "0")
        assert "ZeroDivisionError" in error


def test_all_that_compiled_code_is_made_from_counts_as_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """What kernels import from other rooms says how they round; what stays away only reads files and raises errors."""
    read, really = set[Path](), Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: (read.add(path), really(path))[1])
    module._sources.__wrapped__()
    package = Path(module.__file__).parent.parent
    imports = re.compile(r"^from (qbench[\w.]*) import", re.MULTILINE)
    names = {name for path in package.glob("kernels/**/*.py") for name in imports.findall(path.read_text())}
    files = {package.parent.joinpath(*name.split(".")).with_suffix(".py") for name in names}
    harmless = {package / f"{name}.py" for name in ("errors", "files", "process")}
    assert {path for path in files - harmless if path.exists()} <= read
    assert package / "quant" / "rounding.py" in read


def test_code_from_older_sources_is_not_used_and_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    found = []
    for factor, sources in ((2, "a" * 64), (3, "b" * 64)):
        monkeypatch.setattr(module, "_sources", lambda sources=sources: sources)
        assert called(double(factor), 7) == factor * 7
        found.append(files(tmp_path))
    assert len(found[0]) == len(found[1]) == 1
    assert found[0] != found[1]


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "of another machine", "no header", "a number"])
def test_a_damaged_file_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert called(double(), 5) == 10
    file = tmp_path / "qbench" / files(tmp_path)[0]
    whole = file.read_bytes()
    head, _, data = whole.partition(b"\n")
    other = json.dumps({**json.loads(head), "machine": "0" * 64}).encode()
    file.write_bytes(
        {
            "cut": whole[:-100],
            "changed": whole[:-100] + bytes([whole[-100] ^ 1]) + whole[-99:],
            "empty": b"",
            "of another machine": other + b"\n" + data,
            "no header": data,
            "a number": b"7\n" + data,
        }[damage]
    )
    assert called(double(), 5) == 10
    again = file.read_bytes()
    assert json.loads(again.partition(b"\n")[0])["machine"] != "0" * 64
    assert len(again) > 200


def test_without_a_place_to_keep_it_code_is_compiled_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    code = double()
    assert called(code, 4) == 8
    assert code.ready
    assert not code.kept


def test_where_code_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert folder() == tmp_path / "qbench"
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    assert folder() == Path(module.__file__).with_name("__pycache__")
    monkeypatch.setattr(module.os, "access", lambda path, mode: False)
    monkeypatch.setattr(module, "user_cache_path", lambda name: tmp_path / name)
    assert folder() == tmp_path / "qbench"
