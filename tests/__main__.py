"""Run every check of the repository: ``python -m tests [NAME ...]``, all of them or those named.

Options behind one name are handed to what that check runs: ``python -m tests stress --minutes 60``.

Style, types, layers, tests (those in a browser too), damaged model files, kernels without their compiler, and
notebooks, each with the tools of the running environment. Everything runs even after a failure; the exit status is 1
if anything failed. Caches and settings stay inside the repository (``.cache``), so a run does not read or write the
user's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from ctypes.util import find_library
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
PYTHON = (sys.executable, "-m")
PYTEST = (*PYTHON, "pytest", "-q", "-n", "auto")
WITHOUT_NOTEBOOKS = (*PYTEST, "-p", "no:nbval")  # which takes as long to load as all other plugins
BOUNDED = ("add", "border", "conv", "depthwise", "move", "pool", "rounding", "table")
MALLOC_DEBUG = find_library("c_malloc_debug")
TOUCHING = *BOUNDED, "float_conv", "float_depthwise", "float_windows", "lines", "matmul"
GUARDED = (
    *(f"kernels/test_{name}.py" for name in TOUCHING),
    *("runtime/lowerings", "runtime/test_random_graphs.py", "runtime/test_program.py", "stressing/test_models.py"),
)
PROGRAMS = ("test_program.py", "test_random_graphs.py", "test_borders.py", "lowerings/test_conv.py")
VARIABLES = {
    "python": {"NUMBA_DISABLE_JIT": "1", "QBENCH_EXAMPLES": "5"},
    "bounds": {"NUMBA_BOUNDSCHECK": "1", "QBENCH_EXAMPLES": "5"},
    "guard": {"QBENCH_GUARD": "1", "QBENCH_EXAMPLES": "3"},
    "stress": {"MALLOC_ARENA_MAX": "1"},  # threads share what they would have of their own
    "malloc": {
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_PERTURB_": "165",
        "MALLOC_CHECK_": "3",
        "QBENCH_EXAMPLES": "10",
        **({"LD_PRELOAD": MALLOC_DEBUG} if MALLOC_DEBUG else {}),
    },
}
"""The portable kernels once more: as plain Python, and with every index checked. All kernels and programs once more: in
memory that nothing else may touch (:mod:`qbench.runtime.guard`), and with an allocator that spoils what is free."""
BESIDE = ("types", "fuzz")
"""Checks of one process, which run beside the others: their output comes at the end."""
CHECKS: dict[str, tuple[str, ...]] = {
    "lint": (*PYTHON, "ruff", "check", "."),
    "format": (*PYTHON, "ruff", "format", "--check", "."),
    "types": (*PYTHON, "pyright", "--warnings", "--pythonpath", sys.executable),
    "layers": (str(Path(sys.executable).with_name("lint-imports")), "--cache-dir", str(CACHE / "import-linter")),
    "tests": (*WITHOUT_NOTEBOOKS, "tests", "--durations=10"),
    "fuzz": (*PYTHON, "tests.fuzz", "--minutes", "0.5"),
    "stress": (*PYTHON, "tests.stress", "--minutes", "1"),
    "python": (*WITHOUT_NOTEBOOKS, "tests/kernels"),
    "bounds": (*WITHOUT_NOTEBOOKS, *(f"tests/kernels/test_{name}.py" for name in BOUNDED)),
    "guard": (*WITHOUT_NOTEBOOKS, *(f"tests/{name}" for name in GUARDED)),
    "malloc": (*WITHOUT_NOTEBOOKS, *(f"tests/runtime/{name}" for name in PROGRAMS)),
    "notebooks": (
        *(*PYTEST, "-p", "tests.notebook_kernels", "notebooks", "--dist", "loadfile"),
        *("--nbval-lax", "--nbval-current-env"),
        *("--nbval-sanitize-with", "tests/nbval.cfg", "--nbval-cell-timeout=120"),
    ),
}


def environment() -> dict[str, str]:
    """Return the variables of this process, with caches and settings moved into the repository."""
    ours = {
        "XDG_CACHE_HOME": "cache",
        "XDG_CONFIG_HOME": "config",
        "MPLCONFIGDIR": "matplotlib",
        "IPYTHONDIR": "ipython",
        "JUPYTER_CONFIG_DIR": "jupyter/config",
        "JUPYTER_DATA_DIR": "jupyter/data",
        "JUPYTER_RUNTIME_DIR": "jupyter/runtime",
    }
    for folder in ours.values():
        (CACHE / folder).mkdir(parents=True, exist_ok=True)
    variables = {name: str(CACHE / folder) for name, folder in ours.items()}
    # One BLAS thread each, since the tests already keep every core busy.
    variables |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    # Modules are compiled once: the many processes that tests start take half as long to be up.
    variables["PYTHONDONTWRITEBYTECODE"] = ""
    return {**os.environ, **variables}


def main(arguments: list[str]) -> int:
    names = list(takewhile(lambda argument: not argument.startswith("-"), arguments))
    options = arguments[len(names) :]
    if options and len(names) != 1:
        print(f"name the one check that {' '.join(options)} is for", file=sys.stderr)
        return 2
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        print(f"no check named {', '.join(unknown)}; there are {', '.join(CHECKS)}", file=sys.stderr)
        return 2
    chosen = names or list(CHECKS)
    variables = environment()

    def run(name: str, output: IO[str] | None = None) -> tuple[str, int, float]:
        start, command = monotonic(), (*CHECKS[name], *options)
        print(f"\n== {name}: {' '.join(command)}", file=output, flush=True)
        environment_here = {**variables, **VARIABLES.get(name, {})}
        done = subprocess.run(command, cwd=ROOT, env=environment_here, stdout=output, stderr=output, check=False)
        return name, done.returncode, monotonic() - start

    beside = BESIDE if len(chosen) > 1 else ()
    with ThreadPoolExecutor(1) as one_by_one, ExitStack() as files:
        outputs = {name: files.enter_context(TemporaryFile("w+")) for name in chosen if name in beside}
        later = [one_by_one.submit(run, name, output) for name, output in outputs.items()]
        results = [run(name) for name in chosen if name not in beside] + [future.result() for future in later]
        for output in outputs.values():
            output.seek(0)
            print(output.read(), end="")

    print()
    for name, status, seconds in results:
        print(f"{name:<10} {'passed' if status == 0 else f'FAILED ({status})':<12} {seconds:6.1f} s")
    failed = sum(status != 0 for _, status, _ in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
