"""The most that one core can do: a loop of nothing but multiplications with addition, operands in registers."""

from time import perf_counter
from typing import Literal

import numpy as np

from qbench.kernels.levels import supported
from qbench.kernels.peak import macs_per_iteration, peak_kernel

_SECONDS, _REPEATS = 0.002, 150  # the best of many short ones: others take the core away now and then


class Gauge:
    """At the best level that this machine has, whatever QBENCH_CPU says."""

    def __init__(self, dtype: Literal["int8", "float32"]) -> None:
        level = supported()[0]
        kernel = peak_kernel(level, dtype)
        self._kernel = kernel
        self._arguments, self._bases = np.recarray(1, kernel.arguments), np.zeros(1, np.int64)
        self._macs = macs_per_iteration(level, dtype)

    def read(self) -> float:
        """Multiply-accumulates per second."""
        iterations = 1000
        while (seconds := self._seconds(iterations)) < _SECONDS:
            iterations *= 2
        best = min(seconds, *(self._seconds(iterations) for _ in range(_REPEATS)))
        return iterations * self._macs / best

    def _seconds(self, iterations: int) -> float:
        self._arguments[0] = (iterations,)
        start = perf_counter()
        self._kernel.launch(self._arguments, self._bases, 0, 1)
        return perf_counter() - start
