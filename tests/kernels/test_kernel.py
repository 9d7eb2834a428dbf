"""Kernels on disk: what several processes compiled, another one loads."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest

from qbench.kernels.kernel import Kernel, record
from qbench.kernels.memory import view

LONG = "\n        ".join(["y = (y * 31 + amount) % 1000003"] * 200)  # too long for the compiler to inline
SCRIPT = f"""
import sys
import numpy as np
from qbench.kernels.kernel import Kernel, record
from qbench.kernels.memory import view
from tests.kernels.harness import launch

def made(amount):
    def mix(args, bases, thread, threads):
        x = view(bases, args.x, 1, np.int64)
        y = x[0]
        {LONG}
        x[0] = y
    return Kernel("mix." + str(amount), record(x="i8"), mix)

x = np.zeros(1, np.int64)
for amount in map(int, sys.argv[1:]):
    launch(made(amount), x=x)
print(x[0])
"""


def mixed(*amounts: int) -> int:
    y = 0
    for amount in amounts:
        for _ in range(200):
            y = (y * 31 + amount) % 1000003
    return y


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_kernels_of_one_function_and_several_processes_do_not_mix(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    root = Path(__file__).parents[2]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(root)}

    for amounts in [(1,), (20,), (1, 20)]:
        command = [sys.executable, str(script), *map(str, amounts)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert int(done.stdout) == mixed(*amounts)


def _double(args, bases, thread, threads):
    x = view(bases, args.x, args.count, np.int64)
    for i in range(args.count):
        x[i] *= 2


DOUBLE = Kernel("test.twice", record(x="i8", count="i8"), _double)


def test_python_calls_kernels_with_arrays():
    x = np.arange(6).reshape(2, 3)
    DOUBLE(x=x, count=4)
    assert x.tolist() == [[0, 2, 4], [6, 4, 5]]


def test_calls_with_other_arguments_or_arrays_that_lie_otherwise_are_refused():
    with pytest.raises(ValueError, match=r"test\.twice has the arguments x, count"):
        DOUBLE(x=np.arange(3))
    with pytest.raises(ValueError, match="elements of x do not lie in row-major order"):
        DOUBLE(x=np.arange(6)[::2], count=3)
