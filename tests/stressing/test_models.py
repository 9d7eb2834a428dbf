"""Real networks give the same bits on any number of threads, for any part of the batch, wherever a run starts."""

from __future__ import annotations

import random
from pathlib import Path

from tests.stressing.cases import models, real_cases
from tests.stressing.targets import ProgramTarget, Tell

SMALLEST = 8


def test_small_models(shared_data: Path) -> None:
    smallest = sorted(models(shared_data, 0), key=lambda path: path.stat().st_size)[:SMALLEST]
    rng, tell = random.Random(0), Tell()
    for case in real_cases(smallest, samples=2):
        target = ProgramTarget(case, rng)
        for _ in range(5):
            target.act(rng, tell)
    assert tell.wrong == []
    assert tell.counts["results compared"] > 5 * SMALLEST
