"""How long a cache line takes from one processor to another and back: what a barrier between two threads costs."""

from typing import Any

from qbench.kernels.atomics import load, store
from qbench.kernels.kernel import Kernel, record
from qbench.kernels.memory import address_of

_ARGUMENTS = record(word="i8", first="i8", last="i8", patience="i8")
_GIVEN_UP = -1


def _round_trip(args: Any, bases: Any, thread: int, threads: int) -> None:
    word, polls = address_of(bases, args.word), args.patience
    for trip in range(args.first, args.last):
        if thread == 0:
            store(word, 2 * trip + 1)
        awaited = 2 * trip + 2 - thread
        seen = load(word)
        while seen != awaited:
            polls -= 1
            if polls < 0 or seen == _GIVEN_UP:  # the other thread has no processor to itself
                store(word, _GIVEN_UP)
                return
            seen = load(word)
        if thread != 0:
            store(word, 2 * trip + 2)


ROUND_TRIP = Kernel("round_trip", _ARGUMENTS, _round_trip)
"""Thread 0 writes to `word` (int64, 0 at first), thread 1 answers, from trip `first` up to `last`; who has looked
in vain `patience` times gives up, and `word` is -1."""
