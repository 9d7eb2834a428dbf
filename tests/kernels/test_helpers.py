"""Kernels that several processes compile."""

import json
from pathlib import Path

import numba
import numpy as np
import pytest
from pydantic_core import to_jsonable_python

from qbench.kernels import helpers
from qbench.kernels.conv import conv_kernel
from qbench.kernels.depthwise import choose_sweep, depthwise_kernel
from qbench.kernels.kernel import Kernel, makes_kernels, record
from qbench.kernels.levels import Level
from qbench.kernels.memory import view
from qbench.kernels.requantize import requantize_kernel
from qbench.kernels.rescale_elements import rescale_elements_kernel
from qbench.kernels.tile import Tile
from tests.kernels.harness import launch

needs_jit = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


@makes_kernels
def plus(amount: int) -> Kernel:
    def add(args, bases, thread, threads):
        view(bases, args.x, 1, np.int64)[0] += amount

    return Kernel(f"test.plus.{amount}", record(x="i8"), add)


def test_equal_arguments_give_one_kernel_that_knows_how_it_was_made() -> None:
    assert plus(1) is plus(1)
    assert plus(1).recipe == (__name__, "plus", (1,))


@needs_jit
@pytest.mark.parametrize(
    "kernel",
    [
        conv_kernel(Level.AVX2, Tile(2, 1), "fixed", y="i2"),
        depthwise_kernel(Level.AVX2, choose_sweep(Level.AVX2, (3, 3), (1, 1), (1, 1), (28, 28)), "float"),
        rescale_elements_kernel(Level.AVX2, "fixed", "u1", None, "i2"),
        requantize_kernel("i4", "u1", "tflite_double", True),
    ],
    ids=lambda kernel: kernel.name,
)
def test_recipes_are_followed_from_json(kernel: Kernel) -> None:
    assert kernel.recipe is not None
    made = helpers.made(**json.loads(json.dumps(to_jsonable_python(kernel.recipe._asdict()))))
    assert (made.name, made.arguments) == (kernel.name, kernel.arguments)


@needs_jit
@pytest.mark.parametrize("program", [helpers.PROGRAM, "import sys; sys.exit(3)"])
def test_what_helpers_cannot_do_is_done_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    first = 10 if program == helpers.PROGRAM else 20
    monkeypatch.setattr(helpers, "PROGRAM", f"import os; os.environ['NUMBA_CACHE_DIR'] = {str(tmp_path)!r}; {program}")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    kernels, told = [plus(amount) for amount in range(first, first + 5)], []
    helpers.compile_all([kernel.code for kernel in kernels], lambda done, total: told.append((done, total)), 1)
    assert all(kernel.code.ready and kernel.code.kept for kernel in kernels)
    assert told[-1] == (5, 5)
    x = np.zeros(1, np.int64)
    for kernel in kernels:
        launch(kernel, x=x)
    assert x[0] == 5 * first + 10


@needs_jit
def test_helpers_compile_what_is_queued_while_this_process_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        helpers, "PROGRAM", f"import os; os.environ['NUMBA_CACHE_DIR'] = {str(tmp_path)!r}; {helpers.PROGRAM}"
    )
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    codes, asked = [plus(amount).code for amount in range(30, 36)], helpers.Helpers()
    asked.ask(codes[:4], 1)  # not worth a process
    asked.join()
    assert not any(code.kept for code in codes)
    asked.ask(codes, 1)
    asked.join()
    assert all(code.kept and not code.ready for code in codes)
    assert list(asked.draw(codes)) == []


@needs_jit
def test_helpers_that_are_stopped_leave_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(helpers, "PROGRAM", "import time; time.sleep(1000)")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    asked = helpers.Helpers()
    asked.ask([plus(amount).code for amount in range(40, 45)], 2)
    asked.stop()
    asked.join()
    assert not any(plus(amount).code.kept for amount in range(40, 45))
