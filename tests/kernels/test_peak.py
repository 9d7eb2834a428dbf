"""The loops that measure a core's peak run, and take longer for more iterations."""

import pytest

from qbench.kernels.isa import ISAS
from qbench.kernels.isa.emit import pointer, store
from qbench.kernels.levels import Level, supported
from qbench.kernels.peak import emit_loop, macs_per_iteration, peak_kernel
from tests.kernels.assembly import assembly
from tests.kernels.harness import launch


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("level", supported())
def test_peak_runs(level, dtype):
    launch(peak_kernel(level, dtype), threads=2, iterations=100)
    assert macs_per_iteration(level, dtype) > 0


@pytest.mark.parametrize(
    ("level", "dtype", "cpu", "instruction", "macs"),
    [
        (Level.AVX2, "int8", "haswell", "vpmaddwd", 16),
        (Level.AVX512VNNI, "int8", "cascadelake", "vpdpbusd", 64),
        (Level.AVX2, "float32", "haswell", "vfmadd", 8),
        (Level.AVX512VNNI, "float32", "cascadelake", "vfmadd", 16),
    ],
)
def test_every_multiplication_that_is_counted_is_made(level, dtype, cpu, instruction, macs):
    def emit(b, given):
        iterations, out = given
        store(b, emit_loop(b, ISAS[level], dtype, iterations), pointer(b, out))

    code = assembly(emit, 2, "x86_64-unknown-linux-gnu", cpu)
    assert code.count(instruction) * macs == macs_per_iteration(level, dtype)
