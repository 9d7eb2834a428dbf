"""The instructions that tiles compile to, on processors that are not here."""

from __future__ import annotations

import re

import pytest

from qbench.kernels.epilogue import Accumulators, Codes
from qbench.kernels.isa.avx2 import Avx2, AvxVnni
from qbench.kernels.tile import Tile, emit_tile
from tests.kernels.assembly import assembly

X86 = "x86_64-unknown-linux-gnu"
EPILOGUES = [
    pytest.param(Accumulators(), id="accumulators"),
    *[pytest.param(Codes(kind), id=kind) for kind in ("float", "fixed", "fixed_left")],
]


def code(isa, tile: Tile, epilogue, triple: str, cpu: str, features: str = "") -> str:
    def emit(b, arguments):
        emit_tile(b, isa, tile, epilogue, arguments[:11], arguments[11:])

    return assembly(emit, 15, triple, cpu, features)


def inner_loop(text: str, mark: str) -> list[str]:
    """The instructions of the block that has the most of `mark`, as far as its first jump."""
    blocks = re.split(r"^\.L\w+:", text, flags=re.MULTILINE)
    lines = max(blocks, key=lambda block: block.count(mark)).splitlines()
    instructions = [line.strip() for line in lines if line.startswith("\t")]
    jump = next(i for i, line in enumerate(instructions) if line.startswith("j"))
    return instructions[:jump]


@pytest.mark.parametrize("epilogue", EPILOGUES)
@pytest.mark.parametrize("cpu", ["alderlake", "sierraforest"])
def test_avx_vnni_is_encoded_without_avx512(cpu: str, epilogue) -> None:
    text = code(AvxVnni(), Tile(6, 2), epilogue, X86, cpu)
    assert len(re.findall(r"\{vex\}\s+vpdpbusd", text)) >= 12
    assert not re.search(r"%zmm|%[xy]mm(1[6-9]|[23]\d)|%k[0-7]", text)


@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_avx2_widens_before_it_multiplies(epilogue) -> None:
    text = code(Avx2(), Tile(4, 2), epilogue, X86, "haswell")
    loop = inner_loop(text, "vpmaddwd")
    assert sum("vpmaddwd" in line for line in loop) == 16
    assert "maddubs" not in text
    assert not re.search(r"%zmm|vpdp|%k[0-7]", text)
