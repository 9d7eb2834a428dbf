"""The instruction table of a schedule: what the machine reads."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from qbench.kernels.helpers import compile_all
from qbench.kernels.kernel import Kernel
from qbench.kernels.run_table import lead_code, serve_code
from qbench.progress import showing
from qbench.runtime.memory import aligned, zeros
from qbench.runtime.step import Instruction

_ALIGNMENT = 64
_COMPILING = "compiling kernels for this processor, once"


class Table:
    """Addresses of kernels and of their records, which lie one after the other."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        compile_kernels([instruction.kernel for instruction in instructions])
        sizes = [-(-instruction.arguments.nbytes // _ALIGNMENT) * _ALIGNMENT for instruction in instructions]
        self._records = aligned(sum(sizes))
        start = self._records.ctypes.data
        rows = zeros((len(instructions), 2), np.int64)
        offset = 0
        for row, size, instruction in zip(rows, sizes, instructions, strict=True):
            record = instruction.arguments.view(np.uint8)
            self._records[offset : offset + record.size] = record
            row[:] = instruction.kernel.address, start + offset
            offset += size
        self._rows = rows
        self.address: int = rows.ctypes.data


def compile_kernels(kernels: Sequence[Kernel]) -> None:
    """Compile or load what was not used before, the interpreter of tables as well; with a bar where that takes long."""
    codes = dict.fromkeys((lead_code(), serve_code(), *(kernel.code for kernel in kernels)))
    if cold := [code for code in codes if not code.ready]:
        with showing() as tell:
            compile_all(cold, partial(tell, _COMPILING))
