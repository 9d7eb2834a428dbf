"""What the processor can do: the level that kernels are made for."""

import ctypes
import os
import sys
from enum import StrEnum
from functools import cache

import llvmlite.binding as llvm

from qbench.errors import QBenchError, nearest

_VARIABLE = "QBENCH_CPU"


class Level(StrEnum):
    """A set of instructions, best first."""

    AMX = "amx"
    AVX512VNNI = "avx512vnni"
    AVXVNNI = "avxvnni"
    AVX2 = "avx2"
    PORTABLE = "portable"

    @property
    def vectors(self) -> "Level":
        """The level whose vector instructions it has: itself, unless it adds products of matrices to another one."""
        return Level.AVX512VNNI if self is Level.AMX else self


_VNNI = ("avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512vnni")
_NEEDS = {
    Level.AMX: (*_VNNI, "amx-tile", "amx-int8"),
    Level.AVX512VNNI: _VNNI,
    Level.AVXVNNI: ("avx2", "fma", "f16c", "avxvnni"),
    Level.AVX2: ("avx2", "fma", "f16c"),
    Level.PORTABLE: (),
}


def is_python() -> bool:
    """Whether kernels run as plain Python: NUMBA_DISABLE_JIT=1 says so to Numba as well."""
    return _is_set("NUMBA_DISABLE_JIT")


def numba_is_off() -> bool:
    """Whether kernels run as Python, or with every index checked, and not as machine code."""
    return is_python() or _is_set("NUMBA_BOUNDSCHECK")


@cache
def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "0") not in ("", "0")


@cache
def supported() -> tuple[Level, ...]:
    """The levels of this machine, best first; only the portable one where Numba compiles nothing or checks bounds."""
    if numba_is_off():
        return (Level.PORTABLE,)
    features = llvm.get_host_cpu_features()
    found = (level for level, needs in _NEEDS.items() if all(features.get(name) for name in needs))
    return tuple(level for level in found if level is not Level.AMX or _may_use_matrices())


_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18


@cache
def _may_use_matrices() -> bool:
    """Ask the system for the registers of AMX: it grants them to a process once and for all.

    Source: Linux, Documentation/arch/x86/xstate.rst.
    """
    if not sys.platform.startswith("linux"):
        return False
    return ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) == 0


def current() -> Level:
    """The level to use: the best one, or what the environment variable QBENCH_CPU says.

    Raises
    ------
    QBenchError
        QBENCH_CPU names no level, or one that this machine lacks.
    """
    wanted = os.environ.get(_VARIABLE)
    if not wanted:
        return supported()[0]
    if wanted not in set(Level):
        raise QBenchError(
            f"{_VARIABLE}={wanted!r} is no CPU level ({', '.join(Level)}){nearest(wanted, map(str, Level))}"
        )
    if wanted not in supported():
        raise QBenchError(
            f"{_VARIABLE}={wanted}: this machine has only {', '.join(supported())}; "
            f"unset {_VARIABLE} or name one of them"
        )
    return Level(wanted)
