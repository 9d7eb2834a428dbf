"""Vector instruction sets: each is a small class that emits LLVM vector IR; what is made from it is written once."""

from typing import Literal

from qbench.kernels.isa.avx2 import Avx2, Avx2Words, AvxVnni, AvxVnniWords
from qbench.kernels.isa.avx512 import Avx512Vnni, Avx512Words
from qbench.kernels.isa.base import Isa
from qbench.kernels.levels import Level

__all__ = ["ISAS", "WORDS", "Element", "Isa", "isa_of"]

Element = Literal["u1", "i2"]
"""What products are made of: 8-bit codes, with weights of 8 bits; or 16-bit integers, with weights of 16."""

ISAS: dict[Level, Isa] = {Level.AVX512VNNI: Avx512Vnni(), Level.AVXVNNI: AvxVnni(), Level.AVX2: Avx2()}
"""The instruction set of each level that has one; the portable level is plain Python that Numba compiles."""

WORDS: dict[Level, Isa] = {Level.AVX512VNNI: Avx512Words(), Level.AVXVNNI: AvxVnniWords(), Level.AVX2: Avx2Words()}
"""The same for elements of 16 bits."""


def isa_of(level: Level, x: Element) -> Isa:
    """The instruction set of a level, other than the portable one, for products of such elements."""
    return (ISAS if x == "u1" else WORDS)[level.vectors]
