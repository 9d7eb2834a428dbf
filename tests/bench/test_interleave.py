from __future__ import annotations

from typing import Any

import pytest

from qbench.bench.interleave import Turn, comparable, interleave, state_of
from qbench.bench.result import Entry
from qbench.process import WorkerError

A, B = (Entry("net", engine, "int8", 2, 1) for engine in "ab")
NEAR, FAR = 100e-9, 350e-9


class Scripted:
    """A process that takes turns of the seconds given, and fails after the last."""

    def __init__(self, log: list[str], name: str, seconds: list[float]) -> None:
        self.log, self.name, self.left = log, name, list(seconds)

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        self.log.append(self.name)
        if not self.left:
            raise WorkerError("no more")
        return {"seconds": [self.left.pop(0)]}


def test_engines_take_turns_and_a_failure_hits_nobody_else() -> None:
    log, failures, told = list[str](), list[tuple[Entry, str]](), list[tuple[int, int]]()
    turns: dict[Entry, list[Turn]] = {}
    interleave(
        {A: Scripted(log, "a", [1, 2]), B: Scripted(log, "b", [3, 4, 5])},  # type: ignore[dict-item]
        lambda: NEAR,
        rounds=3,
        seconds=1,
        turns=turns,
        failed=lambda *failure: failures.append(failure),
        told=lambda *done: told.append(done),
    )
    assert log == ["a", "b", "a", "b", "a", "b"]
    assert failures == [(A, "no more")]
    assert turns == {B: [Turn((s,), NEAR) for s in (3, 4, 5)]}
    assert all(done <= total for done, total in told)
    assert told[-1][0] == told[-1][1]


def test_an_interruption_keeps_the_turns_before_it() -> None:
    turns: dict[Entry, list[Turn]] = {}
    trips = iter([NEAR, NEAR, NEAR])

    def interrupted() -> float:
        try:
            return next(trips)
        except StopIteration:
            raise KeyboardInterrupt from None

    processes = {A: Scripted([], "a", [1] * 9), B: Scripted([], "b", [1] * 9)}
    with pytest.raises(KeyboardInterrupt):
        interleave(
            processes,  # type: ignore[arg-type]
            interrupted,
            rounds=5,
            seconds=1,
            turns=turns,
            failed=lambda *_: None,
            told=lambda *_: None,
        )
    assert [len(turns[entry]) for entry in (A, B)] == [2, 1]


@pytest.mark.parametrize(
    ("round_trip", "state"), [(50e-9, "near"), (130e-9, "near"), (350e-9, "far"), (5e-6, "busy"), (None, "busy")]
)
def test_states(round_trip: float | None, state: str) -> None:
    assert state_of(round_trip) == state


def test_like_is_compared_with_like() -> None:
    turns = {
        A: [Turn((1,), NEAR), Turn((2,), FAR), Turn((3,), FAR)],
        B: [Turn((4,), NEAR), Turn((5,), NEAR), Turn((6,), FAR)],
    }
    assert comparable(turns) == ("near", {A: turns[A][:1], B: turns[B][:2]})
    turns[B] = turns[B][:2]
    assert comparable({**turns, A: turns[A][1:]})[0] == "mixed"
    turns[A] += [Turn((7,), FAR)] * 9
    assert comparable(turns) == ("near", {A: turns[A][:1], B: turns[B]})
    assert comparable({}) == ("mixed", {})
