"""The machine's own part in two-thread timings: how far apart two processors are at the moment."""

from concurrent.futures import ThreadPoolExecutor
from statistics import median
from time import perf_counter

import numpy as np

from qbench.kernels.round_trip import ROUND_TRIP

_TRIPS, _REPEATS = 500, 5
_PATIENCE = 5_000_000  # looks in vain: tens of milliseconds


class Gauge:
    """Two threads hand a cache line to each other; each looks at it without pause, outside Python's lock."""

    def __init__(self) -> None:
        self._answering = ThreadPoolExecutor(1)
        _ = ROUND_TRIP.address  # compiled before two threads meet
        self._word = np.zeros(64, np.int64)[16:]  # its cache line is nobody else's

    def read(self) -> float | None:
        """Seconds for a cache line's way to the other processor and back."""
        found = [seconds for _ in range(_REPEATS) if (seconds := self._seconds()) is not None]
        return median(found) if len(found) > _REPEATS // 2 else None

    def _seconds(self) -> float | None:
        self._word[0] = 0
        answered = self._answering.submit(self._launch, 0, _TRIPS + 1, 1)
        self._launch(0, 1, 0)  # until both are there
        start = perf_counter()
        self._launch(1, _TRIPS + 1, 0)
        seconds = perf_counter() - start
        answered.result()
        return seconds / _TRIPS if self._word[0] >= 0 else None

    def _launch(self, first: int, last: int, thread: int) -> None:
        arguments, bases = np.recarray(1, ROUND_TRIP.arguments), np.zeros(1, np.int64)
        arguments[0] = (self._word.ctypes.data, first, last, _PATIENCE)
        ROUND_TRIP.launch(arguments, bases, thread, 2)
