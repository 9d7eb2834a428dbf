"""Vector instruction sets: each is a small class that emits LLVM vector IR; what is made from it is written once."""

from __future__ import annotations

from qbench.kernels.isa.avx2 import Avx2, AvxVnni
from qbench.kernels.isa.avx512 import Avx512Vnni
from qbench.kernels.isa.base import Isa
from qbench.kernels.levels import Level

__all__ = ["ISAS", "Isa"]

ISAS: dict[Level, Isa] = {Level.AVX512VNNI: Avx512Vnni(), Level.AVXVNNI: AvxVnni(), Level.AVX2: Avx2()}
"""The instruction set of each level that has one; the portable level is plain Python that Numba compiles."""
