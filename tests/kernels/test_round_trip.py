"""Two threads that talk through one word."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

from qbench.kernels.round_trip import ROUND_TRIP

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="atomics exist only in compiled code")


def launch(word: np.ndarray, first: int, last: int, patience: int, thread: int) -> None:
    arguments, bases = np.recarray(1, ROUND_TRIP.arguments), np.zeros(1, np.int64)
    arguments[0] = (word.ctypes.data, first, last, patience)
    ROUND_TRIP.launch(arguments, bases, thread, 2)


def test_two_threads_answer_each_other_in_turn() -> None:
    word = np.zeros(1, np.int64)
    with ThreadPoolExecutor(1) as other:
        answered = other.submit(launch, word, 0, 30, 1 << 40, 1)
        launch(word, 0, 10, 1 << 40, 0)
        assert word[0] == 20
        launch(word, 10, 30, 1 << 40, 0)
        answered.result()
    assert word[0] == 60


@pytest.mark.parametrize("thread", [0, 1])
def test_a_thread_that_is_alone_gives_up(thread: int) -> None:
    word = np.zeros(1, np.int64)
    launch(word, 0, 10, 1000, thread)
    assert word[0] == -1
