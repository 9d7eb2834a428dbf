"""The stress test sees a wrong bit, an error, and nothing where all is right."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from qbench.runtime.program import Program
from tests.networks import mlp, samples
from tests.stressing.cases import Case, numbers, random_cases
from tests.stressing.targets import ProgramTarget, SessionTarget, Tell, same


def acted(target: ProgramTarget | SessionTarget, times: int) -> Tell:
    tell, rng = Tell(), random.Random(0)
    for _ in range(times):
        target.act(rng, tell)
    return tell


def test_what_is_right_is_not_told() -> None:
    cases = random_cases(seed=5, count=4, samples=3)
    assert cases
    for case in cases:
        tell = acted(ProgramTarget(case, random.Random(1)), 20)
        assert tell.wrong == []
        assert tell.counts["results compared"] >= tell.counts["runs"] > 0


def test_one_wrong_bit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Program.run

    def wrong(self: Program, *arguments: Any, threads: int, **options: Any) -> dict[str, Any]:
        found = whole(self, *arguments, threads=threads, **options)
        if threads == 5:
            name, array = next(iter(found.items()))
            found[name] = array.copy()
            found[name].reshape(-1).view(np.uint8)[0] ^= 1
        return found

    graph = mlp()
    target = ProgramTarget(Case("mlp", graph, numbers(graph, 3, 0)), random.Random(0))
    monkeypatch.setattr(Program, "run", wrong)
    tell = acted(target, 60)
    assert tell.wrong
    assert all("5 threads" in said for said in tell.wrong)


def test_sessions_give_one_of_the_reports_of_one_thread() -> None:
    target = SessionTarget("mlp", mlp(), samples(12))
    tell = acted(target, 30)
    assert tell.wrong == []
    assert {"edits", "runs", "results compared"} <= {*tell.counts}
    target._wanted["probe"] = [None]
    assert all("a probe" in said for said in acted(target, 30).wrong)
    assert acted(target, 30).wrong


@pytest.mark.parametrize("other", [np.zeros(2, np.int8), np.zeros((1, 2), np.uint8), np.array([0, 1], np.uint8)])
def test_bits_shape_and_type_count(other: np.ndarray) -> None:
    assert same(np.array([0.0, np.nan]), np.array([0.0, np.nan]))
    assert not same(np.array([0.0]), np.array([-0.0]))
    assert not same(np.zeros(2, np.uint8), other)
