"""Compiled code owns no memory: what would allocate is refused, and no code that came out asks for any."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.errors import NumbaError

import qbench
from qbench.kernels.conv import conv_kernel
from qbench.kernels.depthwise import choose_sweep, depthwise_kernel
from qbench.kernels.jit import NO_MEMORY, tell
from qbench.kernels.kernel import Kernel, record
from qbench.kernels.levels import supported
from qbench.kernels.memory import view
from qbench.kernels.shape import choose_tile
from qbench.kernels.stack import stack, stack_array
from qbench.kernels.tally import tally_kernel
from tests.kernels.harness import launch

PACKAGE = Path(qbench.__file__).parent
ALLOCATES = {f"np.{name}{like}" for name in ("empty", "zeros", "ones", "full") for like in ("", "_like")}
ALLOCATES |= {"np.arange", "np.array", "np.concatenate", "np.stack"}
COMPILERS = {"jit", "njit", "cfunc", "CFunc", "jitclass", "stencil"}
needs_numba = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def sources(folder: Path) -> Iterator[tuple[Path, ast.AST]]:
    for path in sorted(folder.rglob("*.py")):
        yield path, ast.parse(path.read_text())


def without_memory(call: ast.Call) -> bool:
    """Whether a call has ``**NO_MEMORY``, or NO_MEMORY as the options of a CFunc."""
    given = [*(word.value for word in call.keywords if word.arg is None), *call.args]
    return any(isinstance(value, ast.Name) and value.id == "NO_MEMORY" for value in given)


def compiles(node: ast.AST) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in COMPILERS


def test_whatever_numba_compiles_is_compiled_without_memory() -> None:
    calls = 0
    for path, tree in sources(PACKAGE):
        allowed: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and compiles(node.func):
                assert without_memory(node), f"{path}:{node.lineno} needs NO_MEMORY"
                allowed.add(id(node.func))
                calls += 1
        for node in ast.walk(tree):
            assert not compiles(node) or id(node) in allowed, f"{path}: a compiler without NO_MEMORY"
    assert calls >= 3


def test_no_kernel_makes_an_array_or_takes_the_address_of_one() -> None:
    """Kernels and what they call have `bases`; in plain Python they would allocate, unlike `stack_array`."""
    functions = 0
    for path, tree in sources(PACKAGE / "kernels"):
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef) or "bases" not in [arg.arg for arg in function.args.args]:
                continue
            functions += 1
            for node in ast.walk(function):
                if isinstance(node, ast.Attribute):
                    where = f"{path}:{node.lineno}: {ast.unparse(node)}"
                    assert node.attr not in ("ctypes", "copy", "astype", "tolist"), where
                    assert ast.unparse(node) not in ALLOCATES, where
    assert functions > 50


def _empty(args: Any, bases: Any, thread: int, threads: int) -> None:
    view(bases, args.out, 1, np.int64)[0] = np.empty(args.count, np.uint8).ctypes.data


def _sum(args: Any, bases: Any, thread: int, threads: int) -> None:
    x = view(bases, args.out, args.count, np.int64)
    x[0] = (x + x)[0]


def _list(args: Any, bases: Any, thread: int, threads: int) -> None:
    view(bases, args.out, 1, np.int64)[0] = len([args.count] * args.count)


@needs_numba
@pytest.mark.parametrize("function", [_empty, _sum, _list], ids=lambda function: function.__name__)
def test_a_kernel_that_allocates_is_refused(function) -> None:
    kernel = Kernel(f"test{function.__name__}", record(out="i8", count="i8"), function)
    with pytest.raises((NumbaError, RuntimeError), match=r"NRT|Only accept returning"):
        _ = kernel.address


def _scratch(args: Any, bases: Any, thread: int, threads: int) -> None:
    numbers, others = stack_array(5, np.int32), stack_array(3, np.float64)
    for i in range(5):
        numbers[i] = i * args.count
    others[:] = 0.5
    out = view(bases, args.out, 8, np.float64)
    for i in range(8):
        out[i] = numbers[i] if i < 5 else others[i - 5]


@pytest.mark.parametrize("threads", [1, 3])
def test_scratch_arrays(threads: int) -> None:
    out = np.zeros(8)
    launch(Kernel("test_scratch", record(out="i8", count="i8"), _scratch), threads, out=out, count=7)
    np.testing.assert_array_equal(out, [0, 7, 14, 21, 28, 0.5, 0.5, 0.5])


def _aligned(args: Any, bases: Any, thread: int, threads: int) -> None:
    out = view(bases, args.out, 2, np.int64)
    out[0], out[1] = stack(3), stack(70)


@needs_numba
def test_addresses_on_the_stack_are_aligned_and_apart() -> None:
    out = np.zeros(2, np.int64)
    launch(Kernel("test_aligned", record(out="i8"), _aligned), out=out)
    assert not (out % 64).any()
    assert abs(out[0] - out[1]) >= 3


@needs_numba
def test_llvm_code_asks_for_no_memory() -> None:
    tell()
    level = supported()[0].vectors
    sweep = choose_sweep(level, (5, 5), (1, 1), (1, 1), (9, 9))
    conv = conv_kernel(supported()[0], choose_tile(supported()[0], 3000, 64, 64), "fixed")
    bases = numba.types.Array(numba.types.int64, 1, "C")
    for kernel in (depthwise_kernel(level, sweep, "exact"), tally_kernel(), conv):
        dispatcher: Any = numba.njit(**NO_MEMORY)(kernel.function)
        signature = numba.from_dtype(kernel.arguments), bases, numba.types.int64, numba.types.int64
        dispatcher.compile(signature)
        code = dispatcher.inspect_llvm(signature)
        assert "alloca" in code
        assert "NRT_" not in code, kernel.name
