"""The loops that measure a core's peak run, and take longer for more iterations."""

import pytest

from qbench.kernels.isa import ISAS
from qbench.kernels.levels import Level, supported
from qbench.kernels.peak import macs_per_iteration, peak_kernel
from tests.kernels.harness import launch


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("level", [level for level in supported() if level in ISAS or level == Level.PORTABLE])
def test_peak_runs(level, dtype):
    launch(peak_kernel(level, dtype), threads=2, iterations=100)
    assert macs_per_iteration(level, dtype) > 0
