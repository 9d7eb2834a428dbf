"""The CPU level: chosen by the machine, or by QBENCH_CPU."""

import pytest

from qbench.errors import QBenchError
from qbench.kernels.levels import Level, current, supported


def test_the_best_level_is_the_default(monkeypatch):
    monkeypatch.delenv("QBENCH_CPU", raising=False)
    assert current() == supported()[0]


@pytest.mark.parametrize("level", supported())
def test_any_level_of_the_machine_can_be_forced(monkeypatch, level):
    monkeypatch.setenv("QBENCH_CPU", level)
    assert current() == level


def test_an_unknown_level_is_refused(monkeypatch):
    monkeypatch.setenv("QBENCH_CPU", "avx512vni")
    with pytest.raises(QBenchError, match="did you mean 'avx512vnni'"):
        current()


def test_a_level_that_the_machine_lacks_is_refused(monkeypatch):
    monkeypatch.setattr("qbench.kernels.levels.supported", lambda: (Level.PORTABLE,))
    monkeypatch.setenv("QBENCH_CPU", "avx2")
    with pytest.raises(QBenchError, match="this machine has only portable"):
        current()
