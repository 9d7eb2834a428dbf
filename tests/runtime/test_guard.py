"""Guarded memory ends the process of whoever reads or writes beside it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from qbench.runtime.guard import PAGE, PATTERN, guarded

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guard knows Linux's pages only")

PREPARE = """
import ctypes, faulthandler
import numpy as np
from qbench.runtime.guard import PAGE, guarded
faulthandler.enable()
def read(address): return ctypes.c_uint8.from_address(address).value
def write(address): ctypes.c_uint8.from_address(address).value = 7
block = guarded(1000, 128, 8)
start = block.ctypes.data
"""
PROGRAM = """
import faulthandler
import numpy as np
from qbench.runtime.guard import PAGE
from qbench.runtime.programs import plan
from tests.runtime.handmade import graph_of
faulthandler.enable()
program = plan(graph_of(("N", 4, 5), "uint8", [(0, 0), (1, 1)], [2]))
def run(**options): return program.run(np.full((2, 4, 5), 5, np.uint8), threads=1, **options)
"""


def ended(code: str, prepare: str = PREPARE) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "QBENCH_GUARD": "1"}
    return subprocess.run([sys.executable, "-c", prepare + code], env=environment, capture_output=True, text=True)


@pytest.mark.parametrize(
    "code",
    [
        "read(start + 1000 + 128)",
        "write(start + 1000 + 128)",
        "read(start - PAGE)",
        "write(start - PAGE)",
        "del block\nread(start)",
        "del block\nmore = [guarded(1000, 128, 8) for _ in range(100)]\nwrite(start)",
        "block = guarded(4 * PAGE, 0, PAGE, [(0, PAGE)])\nread(block.ctypes.data + PAGE - 1)",
        "block = guarded(4 * PAGE, 0, PAGE, [(100, 3 * PAGE - 1)])\nread(block.ctypes.data + 2 * PAGE - 1)",
    ],
)
def test_what_is_not_declared_is_a_fault(code: str) -> None:
    found = ended(code)
    assert found.returncode == -signal.SIGSEGV, found.stderr
    assert 'File "<string>"' in found.stderr  # who did it


@pytest.mark.parametrize(
    ("code", "where"),
    [
        ("write(start - 1)", -1),
        ("write(start - 700)", -700),
        ("write(start + 1000)", 1000),
        ("write(start + 1127)", 1127),
        ("block = guarded(999, 0, 64)\nwrite(block.ctypes.data + 999)", 999),
        ("block = guarded(4 * PAGE, 0, PAGE, [(100, PAGE + 9)])\nwrite(block.ctypes.data + 100)", 100),
        (
            "block = guarded(4 * PAGE, 0, PAGE, [(100, 3 * PAGE + 9)])\nwrite(block.ctypes.data + 3 * PAGE + 8)",
            3 * PAGE + 8,
        ),
    ],
)
def test_a_write_that_no_page_stops_is_found_when_the_block_is_given_back(code: str, where: int) -> None:
    found = ended(code + "\nprint('alive', flush=True)\ndel block")
    assert found.returncode == -signal.SIGABRT, found.stderr
    assert found.stdout == "alive\n"
    assert f"QBENCH_GUARD=1: byte {where} of a block of" in found.stderr


def test_what_is_declared_is_no_fault() -> None:
    inside = "write(start)\nwrite(start + 999)\nread(start - 1)\nread(start + 1000 + 127)\n"
    found = ended(inside + "view = block[3:]\ndel block\nread(start)\ndel view")
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize("size", [0, 1, 63, PAGE - 128, PAGE, 3 * PAGE + 1])
@pytest.mark.parametrize("alignment", [1, 16, 128])
def test_blocks_are_aligned_and_filled(size: int, alignment: int) -> None:
    block = guarded(size, 128, alignment)
    assert block.shape == (size,)
    assert block.ctypes.data % alignment == 0
    assert (block == PATTERN).all()
    block[:] = 0


@pytest.mark.parametrize(
    "code",
    [
        "",
        "run(keep=['v1'])",
        "taken = program._arenas.take(1)\nprogram._arenas.give_back(taken)\n"
        "assert program._arenas.take(1)[0] is not taken[0]",
    ],
)
def test_programs_run_in_guarded_memory(code: str) -> None:
    found = ended(f"{code}\nassert (run()['v2'] == 5).all()", PROGRAM)
    assert (found.returncode, found.stderr) == (0, "")


@pytest.mark.parametrize(
    ("step", "field"),
    [(0, "x"), (0, "out"), (1, "x"), (1, "table"), (1, "out"), (2, "out")],  # inputs, arena, constants, results
)
def test_a_program_that_touches_what_lies_a_page_behind_is_stopped(step: int, field: str) -> None:
    found = ended(f"program.steps[{step}].instructions[0].arguments['{field}'] += PAGE\nrun()", PROGRAM)
    assert found.returncode == -signal.SIGSEGV, found.stderr
    assert "in _native" in found.stderr
