"""Engines take turns, so that whatever else the machine does meanwhile hits all of them alike."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from qbench.bench.result import Entry
from qbench.process import Process, WorkerError

_NEAR, _FAR = 200e-9, 1000e-9  # two states are known, of about 100 and 350 ns; beyond them, somebody else was running


@dataclass(frozen=True)
class Turn:
    """Seconds of each inference, and of a cache line's round trip between two processors just before."""

    seconds: tuple[float, ...]
    round_trip: float | None = None


def interleave(
    processes: Mapping[Entry, Process],
    read_round_trip: Callable[[], float | None],
    *,
    rounds: int,
    seconds: float,
    turns: dict[Entry, list[Turn]],
    failed: Callable[[Entry, str], object],
    told: Callable[[int, int], object],
) -> None:
    """Let every engine run for a while, then all of them again.

    Parameters
    ----------
    processes
        With a model open. One that fails is out, and its turns are forgotten.
    read_round_trip
        Called before each turn.
    rounds, seconds
        How many turns each has, and how long one is.
    turns
        Filled on the way, so that an interruption loses nothing.
    failed, told
        Hear of failures, and of turns done and to do.
    """
    left = dict(processes)
    for number in range(rounds):
        for place, (entry, process) in enumerate(list(left.items())):
            told(number * len(left) + place, rounds * len(left))
            try:
                round_trip = read_round_trip()
                taken = tuple(process.ask("turn", seconds=seconds)["seconds"])
            except WorkerError as error:
                failed(entry, str(error))
                del left[entry]
                turns.pop(entry, None)
            else:
                turns.setdefault(entry, []).append(Turn(taken, round_trip))
    told(1, 1)


def state_of(round_trip: float | None) -> str:
    """How far apart the two processors are, from the seconds of a round trip."""
    if round_trip is None or round_trip > _FAR:
        return "busy"
    return "near" if round_trip < _NEAR else "far"


def comparable(turns: Mapping[Entry, list[Turn]]) -> tuple[str, Mapping[Entry, list[Turn]]]:
    """The turns that engines can be compared by: those in the state that most turns were in.

    Returns
    -------
    tuple
        That state, or "mixed" where no state has turns of every engine, which then all count; and the turns.
    """
    states = Counter(state_of(turn.round_trip) for taken in turns.values() for turn in taken)
    for state, _ in states.most_common():
        chosen = {e: [turn for turn in taken if state_of(turn.round_trip) == state] for e, taken in turns.items()}
        if all(chosen.values()):
            return state, chosen
    return "mixed", turns
